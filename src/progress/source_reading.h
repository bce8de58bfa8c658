#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "progress/losses.h"
#include "progress/step_counter.h"

namespace halfwatt {

/// What one source says.
struct SourceReading {
  bool has_spoken = false;
  double steps = 0;  ///< never goes back
  Seconds at;
  std::optional<double> items;
  LossCounts losses;
  std::uint64_t changes = 0;     ///< how often something else became what is counted
  std::optional<StepFall> fall;  ///< of the step numbers, which keeps them from counting
};

}  // namespace halfwatt
