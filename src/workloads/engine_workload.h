#pragma once

#include <memory>

#include "base/clock.h"
#include "workloads/engine_task.h"

namespace halfwatt {

/// A task of the engine's as a `Workload`: it is prepared anew for every setting, and its steps
/// are done in a thread of their own. What needs more memory than the machine has does not fit,
/// and is not tried.
class EngineWorkload final : public Workload {
 public:
  /// `clock` is the machine's, and outlives it. `memory`: that the device has; nullopt:
  /// unknown.
  EngineWorkload(std::unique_ptr<EngineTask> task,
                 const Clock& clock,
                 std::optional<Bytes> memory);

  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override { return task_->knobs(); }
  /// Stops, prepares and starts again where `setting` is another. Errors: one that cannot be
  /// planned, a device that is lost.
  Result<void> apply(const Setting& setting) override;
  Result<void> start() override { return {}; }  // apply() knows the values to start it with
  WorkDone work_done() override;
  NumericalState numerical_state() override { return loop_.reading().state; }
  std::optional<Prediction> predict(const Setting& setting) const override;
  void stop() override { loop_.stop(); }

  /// What ended the steps; nullopt: nothing did.
  std::optional<Error> error() const { return loop_.reading().error; }

 private:
  std::unique_ptr<EngineTask> task_;
  std::optional<Bytes> memory_;
  WorkloadInfo info_;
  std::optional<Setting> setting_;
  std::optional<Prediction> predicted_;  ///< of setting_
  bool fits_ = true;
  bool knows_peak_ = false;
  int starts_ = 0;
  StepLoop loop_;  ///< the last member: its thread ends before all else
};

}  // namespace halfwatt
