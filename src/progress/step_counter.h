#pragma once

#include <optional>

#include "base/units.h"

namespace halfwatt {

/// Step numbers that went back, and were not counted on from there.
struct StepFall {
  double from = 0;
  double to = 0;
};

/// Makes steps done out of step numbers as a job tells them, which start anywhere, start again
/// with each epoch, jump when a job resumes, and come from several processes at once.
///
/// - The first number above zero is where counting starts: what lies before it may be a resumed
///   run's past.
/// - A number near zero after a higher one is the next epoch: its steps add up.
/// - Other numbers that go back are a process that lags, and are ignored, unless three of them
///   in a row climb: then the job went back to a checkpoint and counts on from there.
class StepCounter {
 public:
  /// `number`: finite, not negative. True if it is progress.
  bool see(double number, Seconds at);
  /// The next number is a first one again.
  void restart();

  bool has_spoken() const { return spoken_; }
  double steps() const { return steps_; }  ///< done since the first number; never goes back
  Seconds at() const { return at_; }       ///< when `steps` last changed
  /// What keeps numbers that come from being progress; nullopt: nothing does.
  std::optional<StepFall> fall() const {
    return lows_ > 0 ? std::optional(StepFall{*last_, *low_}) : std::nullopt;
  }

 private:
  bool go_on(double number, Seconds at);
  bool go_back(double number, Seconds at);

  bool spoken_ = false;
  double steps_ = 0;
  Seconds at_;
  std::optional<double> last_;
  std::optional<double> before_;  ///< the last number of the epoch before
  double stride_ = 0;             ///< the usual distance between numbers
  std::optional<double> low_;     ///< the last of the numbers below last_
  double low_first_ = 0;
  int lows_ = 0;
};

}  // namespace halfwatt
