#pragma once

#include <optional>

#include "base/units.h"
#include "progress/losses.h"

namespace halfwatt {

/// What one source says.
struct SourceReading {
  bool has_spoken = false;
  double steps = 0;  ///< never goes back
  Seconds at;
  std::optional<double> items;
  LossCounts losses;
};

}  // namespace halfwatt
