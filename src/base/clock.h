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
  /// How long the machine has been suspended, since some fixed time; now() stood still then.
  virtual Seconds asleep() const { return Seconds(0); }
};

/// The machine's CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  Seconds now() const override;
  void sleep_until(Seconds time) override;
  Seconds asleep() const override;
};

/// Time that passes only when somebody sleeps.
class VirtualClock final : public Clock {
 public:
  Seconds now() const override { return now_; }
  void sleep_until(Seconds time) override { now_ = time > now_ ? time : now_; }
  Seconds asleep() const override { return asleep_; }
  /// As when somebody closes the lid.
  void suspend(Seconds duration) { asleep_ += duration; }

 private:
  Seconds now_{0};
  Seconds asleep_{0};
};

}  // namespace halfwatt
