#include "workloads/engine_task.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/ops/op_def.h"
#include "engine/plan/plan.h"

namespace halfwatt {

Result<Precision> precision_of(const Setting& setting) {
  for (const auto& [name, value] : setting.values()) {
    if (name == "precision") {
      return precision_named(text(value));
    }
  }
  return bad_input("a setting without a precision");
}

std::vector<Knob> model_knobs() { return {{"precision", "", {}}, {"batch", "", {}}}; }

std::int64_t batch_of(const Setting& setting) {
  return std::max<std::int64_t>(1, std::llround(setting.number("batch").value_or(1)));
}

Prediction prediction(std::span<const Plan> plans, const EngineDevice& device) {
  const Target target = with_rates(device.backend->target(), device.rates);
  const Graph& graph = plans.front().graph;
  double flops = 0;
  Seconds time(0);
  Prediction predicted;
  for (const Step& step : plans.front().devices.front().steps) {
    flops += cost(graph, step.node).flops;
    time += predicted_time(graph, step.node, target);
    predicted.emulated =
        predicted.emulated || target.support(graph, step.node).kind == Support::Kind::emulated;
  }
  predicted.flops = flops;
  std::vector<const Plan*> all;
  for (const Plan& plan : plans) {
    all.push_back(&plan);
  }
  predicted.memory = Bytes(static_cast<double>(shared_footprint(all, 0).total()));
  if (!device.rates.empty()) {
    predicted.step_time = time;
  }
  return predicted;
}

}  // namespace halfwatt
