#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt train`: pictures in, a model out.
Command train_command();

}  // namespace halfwatt
