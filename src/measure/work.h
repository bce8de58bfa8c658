#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace halfwatt {

/// The unit of an item where no progress of a command is known: a second of its running, in
/// which nobody knows what it did.
inline constexpr std::string_view kSecondOfRunning = "second";

/// What was done in a window, and how fast.
struct Work {
  double steps = 0;   ///< fractional: a window ends on counter edges, not on steps
  Seconds duration;   ///< of the window
  Seconds step_time;  ///< median of the window; its mean where the rules ask for that
  std::optional<Seconds> step_time_low;  ///< 95 % interval of that median
  std::optional<Seconds> step_time_high;
  std::optional<Seconds> step_time_p05 = {};  ///< of single steps, where they were seen
  std::optional<Seconds> step_time_p95 = {};
  double items_per_step = 1;
  std::string unit = "step";  ///< of an item: "image", "token"

  double items_per_second() const { return items_per_step / step_time.value(); }
};

}  // namespace halfwatt
