#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt calibrate`: images in, the scales of an inference in fp8 out.
Command calibrate_command();

}  // namespace halfwatt
