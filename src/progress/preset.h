#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "progress/expression.h"

namespace halfwatt {

/// How to read the output of one kind of program.
struct Preset {
  std::vector<Expression> steps;   ///< the first that matches a line counts
  std::vector<Expression> losses;  ///< likewise
  std::vector<Expression> alarms;  ///< each match says that a loss was not finite
};

/// The preset called `name`: tqdm, hf-trainer, lightning, auto. Errors: bad input that lists
/// them.
Result<Preset> preset(std::string_view name);

/// Whether a bar of this label is something beside the training: a validation, a preparation of
/// data.
bool is_aside(std::string_view label);
/// Whether a bar of this rate counts bytes: a download.
bool counts_bytes(std::string_view rate);

}  // namespace halfwatt
