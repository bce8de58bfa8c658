#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt limit`: shows a limit, or sets one and leaves it.
Command limit_command();

}  // namespace halfwatt
