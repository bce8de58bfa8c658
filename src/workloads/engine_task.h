#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/backend/backend.h"
#include "engine/passes/precision.h"
#include "measure/workload.h"
#include "workloads/op_rates.h"
#include "workloads/step_loop.h"

namespace halfwatt {

/// What the tasks run on.
struct EngineDevice {
  Backend* backend = nullptr;
  OpRates rates;  ///< in the precisions that will be asked for; empty: nothing is known
};

/// Something of the engine's that is done over and over to be measured: a training step, a
/// forward pass, one product. Its data is random and drawn before the first step.
class EngineTask {
 public:
  virtual ~EngineTask() = default;
  /// Name and labels; what a step yields in `setting` is items().
  virtual const WorkloadInfo& info() const = 0;
  virtual std::vector<Knob> knobs() const = 0;
  /// Items of a step.
  virtual double items(const Setting& setting) const = 0;
  /// Why the device does not compute a setting that others can be measured without; empty if it
  /// does. What is refused as a whole says so when it is planned.
  virtual std::string why_refused(const Setting&) const { return ""; }
  /// From the plan, without running it. Errors: a setting that cannot be planned.
  virtual Result<Prediction> predict(const Setting& setting) const = 0;
  /// Allocates and draws all that the steps need, which the step then owns. Errors: as
  /// predict(), and too little memory.
  virtual Result<StepLoop::Step> prepare(const Setting& setting) = 0;
};

/// The precision that a setting names. Errors: none of that name.
Result<Precision> precision_of(const Setting& setting);
/// The knobs of what has a model: precision and batch.
std::vector<Knob> model_knobs();
/// Images at once; at least 1.
std::int64_t batch_of(const Setting& setting);

/// What a session of `plans` will cost on a device, the first of them being done over and over.
Prediction prediction(std::span<const Plan> plans, const EngineDevice& device);

}  // namespace halfwatt
