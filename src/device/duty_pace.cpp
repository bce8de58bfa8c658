#include "device/duty_pace.h"

#include <algorithm>

namespace halfwatt {
namespace {

// Over a turn, which is allowed at its start: a moment in which others take the processors is
// made up for, and a window of seconds does not see much of the one before it.
constexpr Seconds kMostUnused{0.025};
// A process that holds up a signal for longer is not made to pay for it.
constexpr Seconds kMostOverdrawn{0.15};

}  // namespace

Seconds DutyPace::allow(Seconds run) {
  const Seconds lost(std::max((left_ + run - kMostUnused).value(), 0.0));
  left_ = left_ + run - lost;
  return lost;
}

void DutyPace::use(Seconds run) { left_ = std::max(left_ - run, kMostOverdrawn * -1); }

}  // namespace halfwatt
