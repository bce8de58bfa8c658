#pragma once

#include <optional>

#include "base/units.h"

namespace halfwatt {

/// The card's state during a window; what it does not tell is absent.
struct Conditions {
  std::optional<Watts> requested_limit;
  std::optional<Watts> enforced_limit;
  std::optional<Megahertz> sm_clock;
  std::optional<Megahertz> memory_clock;
  std::optional<Celsius> temperature_start;
  std::optional<Celsius> temperature_end;
  std::optional<double> fan_percent;
  std::optional<Bytes> memory_used;
  std::optional<Bytes> resident_peak = {};   ///< of the workload, in memory of the host
  std::optional<double> power_capped_share;  ///< of the window, 0..1: the cap was binding
  std::optional<double> throttled_share;     ///< of the window: heat, brake, board limit
};

}  // namespace halfwatt
