#include "workloads/infer_task.h"

#include <utility>

#include "engine/infer/inference.h"
#include "workloads/plan_run.h"

namespace halfwatt {
namespace {

class InferTask final : public EngineTask {
 public:
  InferTask(ModelChoice choice, EngineDevice device)
      : choice_(std::move(choice)),
        device_(std::move(device)),
        info_(info_of(choice_, "infer")) {}

  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override { return model_knobs(); }
  double items(const Setting& setting) const override {
    return static_cast<double>(batch_of(setting));
  }

  Result<Prediction> predict(const Setting& setting) const override {
    const auto plan = plan_of(setting);
    return plan ? Result<Prediction>(prediction({&*plan, 1}, device_)) : plan.error();
  }

  Result<StepLoop::Step> prepare(const Setting& setting) override {
    auto plan = plan_of(setting);
    if (!plan) {
      return plan.error();
    }
    auto opened = PlanRun::open(std::move(*plan), *device_.backend, choice_.seed);
    if (!opened) {
      return opened.error();
    }
    const std::shared_ptr<PlanRun> forward =
        std::move(*opened);  // as a std::function is copied
    return StepLoop::Step([forward]() -> Result<NumericalState> {
      if (const auto done = forward->run(); !done) {
        return done.error();
      }
      return forward->is_finite("logits") ? NumericalState::live : NumericalState::dead;
    });
  }

 private:
  Result<Plan> plan_of(const Setting& setting) const {
    const auto precision = precision_of(setting);
    if (!precision) {
      return precision.error();
    }
    return inference_plan({choice_.model, *precision, {}, batch_of(setting)},
                          device_.backend->target());
  }

  ModelChoice choice_;
  EngineDevice device_;
  WorkloadInfo info_;
};

}  // namespace

std::unique_ptr<EngineTask> infer_task(ModelChoice choice, EngineDevice device) {
  return std::make_unique<InferTask>(std::move(choice), std::move(device));
}

}  // namespace halfwatt
