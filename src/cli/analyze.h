#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt analyze`: the verdict on recorded files.
Command analyze_command();

}  // namespace halfwatt
