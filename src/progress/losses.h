#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/numerical_state.h"

namespace halfwatt {

/// The losses of a job so far.
struct LossCounts {
  std::uint64_t told = 0;
  std::uint64_t dead = 0;     ///< of these, not finite
  std::uint64_t changed = 0;  ///< of these, different from the one before
  std::optional<double> last;
};

/// What the losses between two times say. A loss that was not finite holds until another is
/// told.
inline NumericalState state_between(const LossCounts& begin, const LossCounts& now) {
  // Fewer equal ones may be one loss that is shown again.
  constexpr std::uint64_t kFewestToStall = 5;
  const std::uint64_t told = now.told - begin.told;
  if (now.dead > begin.dead || (told == 0 && now.last && !std::isfinite(*now.last))) {
    return NumericalState::dead;
  }
  if (told == 0) {
    return NumericalState::unknown;
  }
  return now.changed == begin.changed && told >= kFewestToStall ? NumericalState::stalled
                                                                : NumericalState::live;
}

/// Counts losses one by one.
class Losses {
 public:
  /// `digits`: the loss as it was written, which decides whether it changed.
  void see(double loss, std::string_view digits) {
    ++counts_.told;
    counts_.dead += std::isfinite(loss) ? 0 : 1;
    counts_.changed += counts_.last && digits != digits_ ? 1 : 0;
    counts_.last = loss;
    digits_ = digits;
  }
  /// Another job: the last loss says nothing about it.
  void restart() {
    counts_.last.reset();
    digits_.clear();
  }
  const LossCounts& counts() const { return counts_; }
  const std::string& digits() const { return digits_; }

 private:
  LossCounts counts_;
  std::string digits_;
};

}  // namespace halfwatt
