#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt tune`: the limits that answer, in few windows.
Command tune_command();
/// `halfwatt sweep`: a grid or list of limits, each measured.
Command sweep_command();

}  // namespace halfwatt
