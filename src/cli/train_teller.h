#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/train_request.h"
#include "report/progress_line.h"
#include "workloads/training_log.h"

namespace halfwatt {

/// Tells of steps and evaluations as the user wants to hear it: a line of progress on stderr,
/// or a line of JSON for each on stdout; and writes them to the logs.
class TrainTeller {
 public:
  /// All three outlive it.
  TrainTeller(const TrainRequest& request, TrainingLog& log, const Clock& clock);

  void tell(const StepEvent& event);
  void tell(const EvaluationEvent& event);

 private:
  void show(const StepEvent& event, const StepCost& cost);
  Seconds left(double done, double total);
  void say(const std::string& text);
  void tell(const std::vector<BadImage>& bad);

  const TrainRequest* request_;
  TrainingLog* log_;
  const Clock* clock_;
  ProgressLine line_;
  Seconds started_;
  double before_ = -1;           ///< steps that were done when it began; below 0: not known yet
  std::set<std::string> named_;  ///< bad pictures, each of which is told of once
};

}  // namespace halfwatt
