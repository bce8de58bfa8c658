#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt status`: who holds which card.
Command status_command();

}  // namespace halfwatt
