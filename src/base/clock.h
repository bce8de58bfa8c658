#pragma once

#include "base/units.h"

namespace halfwatt {

/// Monotonic time as the measuring code sees it, so that a sweep of hours can be tested in
/// milliseconds.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since an arbitrary start; never goes back.
  virtual Seconds now() const = 0;
  /// Returns at `time` or a little later; at once where `time` has passed.
  virtual void sleep_until(Seconds time) = 0;
};

/// The machine's CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  Seconds now() const override;
  void sleep_until(Seconds time) override;
};

/// Time that passes only when somebody sleeps.
class VirtualClock final : public Clock {
 public:
  Seconds now() const override { return now_; }
  void sleep_until(Seconds time) override { now_ = time > now_ ? time : now_; }

 private:
  Seconds now_{0};
};

}  // namespace halfwatt
