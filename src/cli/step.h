#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt step`: a job tells the halfwatt around it how far it has come.
Command step_command();

}  // namespace halfwatt
