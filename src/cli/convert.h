#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt convert`: the weights of a file in another format, and what that cost them.
Command convert_command();

}  // namespace halfwatt
