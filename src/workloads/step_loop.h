#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/numerical_state.h"
#include "base/result.h"

namespace halfwatt {

/// Does a step over and over in a thread of its own, so that a device is never idle while it is
/// measured, and keeps when each ended.
class StepLoop {
 public:
  /// One step. An error ends the loop.
  using Step = std::function<Result<NumericalState>()>;
  /// How far it is.
  struct Reading {
    double count = 0;           ///< steps since the loop was made, over all starts
    Seconds at;                 ///< when the last one ended, or the loop was started
    std::vector<Seconds> ends;  ///< of the last ones, the oldest first
    NumericalState state = NumericalState::unknown;
    std::optional<Error> error;  ///< what ended it
  };

  /// `clock` outlives it.
  explicit StepLoop(const Clock& clock) : clock_(&clock) {}
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;
  ~StepLoop() { stop(); }

  /// Begins with `step`, in place of what is done now.
  void start(Step step);
  /// Returns when the step in hand is over.
  void stop();
  /// The same, and gives up the step with all that it owns.
  void release();
  Reading reading() const;

 private:
  void run();
  bool take(const Result<NumericalState>& done);

  const Clock* clock_;
  mutable std::mutex mutex_;  ///< of all below, but for the last two
  bool asked_to_stop_ = false;
  double count_ = 0;
  std::deque<Seconds> ends_;
  Seconds begun_;
  NumericalState state_ = NumericalState::unknown;
  std::optional<Error> error_;
  Step step_;  ///< the thread's while it runs
  std::thread thread_;
};

}  // namespace halfwatt
