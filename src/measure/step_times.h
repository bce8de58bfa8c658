#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "measure/statistics.h"
#include "measure/workload.h"

namespace halfwatt {

/// How long the steps of a window take, from the moments at which the workload told how far it
/// was: after every step, or every fifty steps as a log does.
class StepTimes {
 public:
  /// A moment, and the work as it had been told by then.
  struct Moment {
    Seconds at;
    WorkDone work;
  };

  /// The work as it was told last, and as it is told now, in a window that began at `begun`.
  void see(const WorkDone& before, const WorkDone& now, Seconds begun);

  /// Whether a speed is known: from two reports within the window, unless each is of one step.
  bool are_known() const { return times_.size() > (coarse_ ? 1U : 0U); }
  /// Of the last report; nullopt before the first.
  std::optional<double> last() const;
  /// The median of a step, with its interval. The speed is known.
  MedianInterval median() const { return median_interval(times_); }
  /// Below which `share` of the steps lie; nullopt unless every step was seen by itself, and
  /// enough of them that the share is one step at least.
  std::optional<double> quantile(double share) const;
  /// Steps from one moment to another in fractions, if each takes `step_time` seconds. A
  /// workload that is silent for longer than it usually is does none meanwhile.
  double steps(const Moment& from, const Moment& to, double step_time) const;
  /// Standard deviation over mean, of step times taken together over at least `stretch`.
  double variation(Seconds stretch) const;

 private:
  void add(double time, double steps);
  std::vector<double> together(Seconds stretch) const;

  std::vector<double> times_;    // s, of a step
  std::vector<double> told_;     // steps, of each report that times_ has
  std::vector<double> strides_;  // steps from one report to the next
  bool coarse_ = false;          // a report was of several steps at once
};

}  // namespace halfwatt
