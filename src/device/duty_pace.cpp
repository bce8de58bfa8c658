#include "device/duty_pace.h"

#include <algorithm>

namespace halfwatt {
namespace {

// Some turns: a moment in which others take the processors is made up for, and a job that
// slept for long does not run free of its limit for long. Short against a window.
constexpr Seconds kMost{0.15};

}  // namespace

void DutyPace::allow(Seconds run) { left_ = std::min(left_ + run, kMost); }

void DutyPace::use(Seconds run) { left_ = std::max(left_ - run, kMost * -1); }

bool DutyPace::is_behind() const { return left_ >= kMost * 0.99; }

}  // namespace halfwatt
