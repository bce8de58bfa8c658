#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt inspect`: what tensors a file holds.
Command inspect_command();

}  // namespace halfwatt
