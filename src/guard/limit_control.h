#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "device/device.h"

namespace halfwatt {

/// What a card says about its limit. What it does not say is nullopt.
struct LimitState {
  Watts requested;                  ///< what somebody last asked for
  std::optional<Watts> enforced;    ///< what holds now; less where something else caps the card
  std::optional<LimitRange> range;  ///< absent: no limit may be written, since none is guessed
  std::optional<bool> persistence;  ///< whether the driver stays loaded without a user
  bool sliced = false;              ///< MIG is on: a limit would hit every slice's owner
  bool operator==(const LimitState&) const = default;
};

/// How one card's limit is read and written.
class LimitControl {
 public:
  virtual ~LimitControl() = default;
  /// The requested limit, now.
  virtual Result<Watts> read() = 0;
  virtual Result<void> write(Watts limit) = 0;
  /// Everything about the limit. A control that knows no more than read() tells that.
  virtual Result<LimitState> look() {
    const Result<Watts> requested = read();
    if (!requested) {
      return requested.error();
    }
    return LimitState{*requested, {}, {}, {}, false};
  }
};

/// Whether two limits are the same one: cards round to whole milliwatts, some to watts.
constexpr bool same_limit(Watts a, Watts b) {
  constexpr Watts kRounding{0.5};
  return a - b <= kRounding && b - a <= kRounding;
}

/// Whether `in_force`, read at once after `asked` was written, is that by another name: a card
/// has steps. The coarsest that is taken for one is far above any that is known; less would
/// leave a card at a limit of ours, more would take a stranger's for ours.
constexpr bool may_be_rounded(Watts asked, Watts in_force) {
  constexpr Watts kCoarsestStep{25};
  return asked - in_force <= kCoarsestStep && in_force - asked <= kCoarsestStep;
}

}  // namespace halfwatt
