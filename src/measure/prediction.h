#pragma once

#include <optional>

#include "base/units.h"

namespace halfwatt {

/// What a setting costs, known before anything runs; what nobody can tell is absent.
struct Prediction {
  std::optional<Bytes> memory = {};  ///< that it holds at most
  std::optional<Seconds> step_time = {};
  std::optional<double> flops = {};  ///< of a step: those of products
  bool emulated = false;  ///< in a format that the device rounds to and does not compute in
};

}  // namespace halfwatt
