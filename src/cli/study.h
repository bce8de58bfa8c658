#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt study`: the recorded study from figures to verdict, and the search played on it.
Command study_command();

}  // namespace halfwatt
