#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt bench`: how fast this machine does the engine's own steps, through measure/.
Command bench_command();

}  // namespace halfwatt
