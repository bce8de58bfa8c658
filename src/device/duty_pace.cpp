#include "device/duty_pace.h"

#include <algorithm>
#include <cmath>

namespace halfwatt {
namespace {

// Over how much undisturbed time the rate is smoothed: some turns, so that one that others
// disturb says little, and short against a window.
constexpr Seconds kMemory{0.6};
// Of one processor; less is a job that waits for something else, and says nothing by its use.
constexpr double kHardlyComputes = 0.05;
// A turn is never taken for more than this, either way: the job itself changes, too.
constexpr double kMostFactor = 2;
constexpr Seconds kMostDebt{0.4};  // about a turn; what lies further back is forgiven

}  // namespace

void DutyPace::saw_steady(Seconds time, Seconds run) {
  if (!(time > Seconds(0))) {
    return;
  }
  const double seen = run / time;
  const double weight = rate_ ? 1 - std::exp(-(time / kMemory)) : 1;
  rate_ = rate_.value_or(0) + (seen - rate_.value_or(0)) * weight;
}

Seconds DutyPace::worth(Seconds allowed, Seconds run) const {
  if (!rate_ || *rate_ < kHardlyComputes) {
    return allowed;
  }
  return Seconds(std::clamp(run.value() / *rate_, allowed.value() / kMostFactor,
                            allowed.value() * kMostFactor));
}

Seconds DutyPace::time_on(Seconds length, double share) const {
  return Seconds(std::clamp((length * share - debt_).value(), 0.0, length.value()));
}

void DutyPace::close_turn(Seconds elapsed, double share, Seconds worth) {
  debt_ += worth - elapsed * share;
  debt_ = Seconds(std::clamp(debt_.value(), -kMostDebt.value(), kMostDebt.value()));
}

}  // namespace halfwatt
