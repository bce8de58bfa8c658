#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt plan`: what a step of a model needs and takes, before it runs.
Command plan_command();

}  // namespace halfwatt
