#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt monitor --once`: all signals of all devices, once.
Command monitor_command();

}  // namespace halfwatt
