#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt run`: a real job under a limit, as if it had been started without us.
Command run_command();

}  // namespace halfwatt
