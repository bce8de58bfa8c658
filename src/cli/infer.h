#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `halfwatt infer`: images in, logits and the likeliest classes out.
Command infer_command();

}  // namespace halfwatt
