#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "device/simulated.h"
#include "measure/workload.h"

namespace halfwatt {

/// One recorded point: how long a step took under a limit.
struct RecordedPoint {
  Watts limit;
  Seconds step_time;
};

/// What disturbs the playback of a recording. All invented, all off by default.
struct Disturbance {
  double window_noise = 0;   ///< relative deviation, drawn anew at every apply()
  double drift = 0;          ///< relative deviation of a slow AR(1) process
  Seconds drift_time{300};   ///< its correlation time
  double outlier_share = 0;  ///< of windows that run `outlier_size` slower
  double outlier_size = 0.03;
  double thermal_ramp = 0;  ///< how much slower steps end up as the case warms
  Seconds ramp_time{900};
  double cold_start = 0;  ///< how much slower the first step is
  Seconds cold_time{10};
  double step_jitter = 0;  ///< relative deviation of single steps
};

/// A recorded series run again on a simulated card: steps take what the recording says at the
/// limit in force, by interpolation between its points.
class RecordedWorkload final : public Workload {
 public:
  /// `curve`: at least one point, limits ascending and distinct. `demand`: what the workload
  /// would draw without a limit.
  RecordedWorkload(WorkloadInfo info,
                   std::vector<RecordedPoint> curve,
                   Watts demand,
                   NumericalState state,
                   SimulatedCard& card,
                   Disturbance disturbance,
                   std::uint64_t seed);

  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override { return {}; }
  Result<void> apply(const Setting& setting) override;
  Result<void> start() override;
  WorkDone work_done() override;
  NumericalState numerical_state() override { return state_; }
  std::optional<Prediction> predict(const Setting&) const override { return std::nullopt; }
  void stop() override;

  /// Goes on with the random numbers of a run that was interrupted after so many windows.
  void go_on_after(std::size_t windows);

  /// What the recording says about `limit`, undisturbed.
  Seconds recorded_step_time(Watts limit) const;

 private:
  Seconds next_step_time();
  double slow_drift(Seconds elapsed);

  WorkloadInfo info_;
  std::vector<RecordedPoint> curve_;
  Watts demand_;
  NumericalState state_;
  SimulatedCard* card_;
  Disturbance disturbance_;
  std::uint64_t seed_;
  Rng rng_;
  double window_factor_ = 1;
  double drift_ = 0;
  bool running_ = false;
  Seconds started_;
  WorkDone done_;
  Seconds next_end_;
};

}  // namespace halfwatt
