#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt restore`: puts back what halfwatts that died have left.
Command restore_command();

}  // namespace halfwatt
