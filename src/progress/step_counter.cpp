#include "progress/step_counter.h"

#include <algorithm>

namespace halfwatt {
namespace {

// Processes that do steps together are at most so many printed numbers apart.
constexpr double kLag = 2;
// Numbers that climb from below, after which a job has gone back for good.
constexpr int kLowsOfARollback = 3;
// How fast a distance between numbers that was unusually long is forgotten.
constexpr double kForget = 0.9;
// An epoch is told in at least so many numbers where late numbers of the last one are known.
constexpr double kNumbersOfAnEpoch = 4;

}  // namespace

bool StepCounter::see(double number, Seconds at) {
  if (!spoken_) {
    spoken_ = true;
    at_ = at;
  }
  if (!last_) {
    if (number > 0) {
      last_ = number;
      at_ = at;
    }
    return false;
  }
  if (number > *last_) {
    return go_on(number, at);
  }
  if (number < *last_) {
    return go_back(number, at);
  }
  lows_ = 0;
  return false;
}

bool StepCounter::go_on(double number, Seconds at) {
  const double step = number - *last_;
  const bool is_late = before_ && stride_ > 0 && stride_ * kNumbersOfAnEpoch < *before_ &&
                       step > kLag * stride_ && number + kLag * stride_ >= *before_;
  if (is_late) {
    return false;  // another process still tells the end of the last epoch
  }
  steps_ += step;
  stride_ = std::max(step, stride_ * kForget);
  last_ = number;
  at_ = at;
  lows_ = 0;
  return true;
}

bool StepCounter::go_back(double number, Seconds at) {
  const double gap = *last_ - number;
  if (gap <= kLag * stride_ && number > 0) {
    return false;
  }
  if (number <= std::max(stride_, 1.0)) {
    before_ = last_;
    last_ = number;
    lows_ = 0;
    steps_ += number;
    at_ = number > 0 ? at : at_;
    return number > 0;
  }
  if (lows_ == 0 || number <= *low_) {
    low_first_ = number;
    lows_ = 0;
  }
  low_ = number;
  ++lows_;
  if (lows_ < kLowsOfARollback) {
    return false;
  }
  steps_ += number - low_first_;
  before_.reset();
  last_ = number;
  at_ = at;
  lows_ = 0;
  return true;
}

void StepCounter::restart() {
  last_.reset();
  before_.reset();
  stride_ = 0;
  lows_ = 0;
}

}  // namespace halfwatt
