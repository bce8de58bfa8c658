#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt tune`: the limits that answer, in few windows.
Command tune_command();
/// `halfwatt sweep`: a grid or list of limits, each measured.
Command sweep_command();

/// Set by SIGINT and SIGTERM, asked by the measuring loop; main installs the handlers.
bool interruption_is_asked();
void ask_for_interruption();

}  // namespace halfwatt
