#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/numerical_state.h"

namespace halfwatt {

/// What a step says of its numbers.
struct StepNumbers {
  double loss = 0;
  bool overflowed = false;      ///< some gradient was not finite
  bool skipped = false;         ///< and so nothing was applied
  std::optional<double> scale;  ///< of the loss, after the step
  double least_scale = 0;       ///< the floor of the scale
  std::int64_t parameters = 0;  ///< elements
  std::int64_t not_finite = 0;  ///< of these, after the step
  std::int64_t unchanged = 0;   ///< by the step
  double rate_share = 1;  ///< of the rate in that of the optimizer, as a schedule lowers it
  std::string first_bad;  ///< the first gradient or parameter that is not finite
};

/// Tells from step to step whether a run still computes anything: dead once a parameter is not
/// finite, or the loss of a step that was applied, or when the scale is at its floor and
/// gradients still overflow; skipping if more than half of the last 50 steps were skipped;
/// stalled if more than 99 % of the parameters did not change though the schedule has left a
/// thousandth of the rate. A dead run stays dead.
class NumericalWatch {
 public:
  /// All that it remembers; a watch made from it goes on as this one would.
  struct Memory {
    std::deque<bool> skipped;  ///< of the last steps, the latest behind
    NumericalState state = NumericalState::unknown;
    std::string reason;
  };
  NumericalWatch() = default;
  explicit NumericalWatch(Memory memory) : memory_(std::move(memory)) {}

  NumericalState see(const StepNumbers& step);
  /// Why, if it is not live.
  const std::string& reason() const { return memory_.reason; }
  const Memory& memory() const { return memory_; }

 private:
  NumericalState judge(const StepNumbers& step);

  Memory memory_;
};

}  // namespace halfwatt
