#include "engine/plan/step_plan.h"

#include <algorithm>

namespace halfwatt {
namespace {

/// Simulates the step lists of a plan.
class Clockwork {
 public:
  Clockwork(const Plan& plan, std::span<const Target> targets)
      : plan_(&plan), targets_(targets), done_(plan.devices.size()) {
    prediction_.busy.resize(plan.devices.size());
  }

  StepTime run() {
    std::vector<std::size_t> next(plan_->devices.size());
    // A wait is for a node before the one that waits: in the order of nodes all are known.
    while (const auto device = earliest(next)) {
      carry_out(*device, next[*device]++);
    }
    return prediction_;
  }

 private:
  std::optional<std::size_t> earliest(const std::vector<std::size_t>& next) const {
    std::optional<std::size_t> found;
    for (std::size_t device = 0; device < next.size(); ++device) {
      const auto& steps = plan_->devices[device].steps;
      if (next[device] < steps.size() &&
          (!found ||
           steps[next[device]].node < plan_->devices[*found].steps[next[*found]].node)) {
        found = device;
      }
    }
    return found;
  }

  void carry_out(std::size_t device, std::size_t at) {
    const Step& step = plan_->devices[device].steps[at];
    Seconds start = at == 0 ? Seconds(0) : done_[device].back();
    for (const Wait& wait : step.waits) {
      const auto& there = done_[static_cast<std::size_t>(wait.device)];
      start = std::max(start, there[static_cast<std::size_t>(wait.step)]);
    }
    const Seconds takes = predicted_time(plan_->graph, step.node, targets_[device]);
    done_[device].push_back(start + takes);
    prediction_.busy[device] += takes;
    prediction_.time = std::max(prediction_.time, start + takes);
  }

  const Plan* plan_;
  std::span<const Target> targets_;
  std::vector<std::vector<Seconds>> done_;  // by device and step: when
  StepTime prediction_;
};

}  // namespace

Result<StepPlan> lower_step(const Graph& graph,
                            const std::optional<Graph>& update,
                            int micro_batches,
                            std::span<const Target> targets) {
  auto plan = lower(graph, targets);
  if (!plan) {
    return plan.error();
  }
  StepPlan step{std::move(*plan), {}, micro_batches};
  if (update) {
    auto second = lower(*update, targets);
    if (!second) {
      return second.error();
    }
    step.update = std::move(*second);
  }
  return step;
}

Footprint StepPlan::footprint(int device) const {
  std::vector<const Plan*> plans = {&plan};
  if (update) {
    plans.push_back(&*update);
  }
  return shared_footprint(plans, device);
}

std::optional<StepTime> predict(const Plan& plan, std::span<const Target> targets) {
  if (!std::all_of(targets.begin(), targets.end(), has_rates)) {
    return std::nullopt;
  }
  return Clockwork(plan, targets).run();
}

std::optional<StepTime> predict(const StepPlan& step, std::span<const Target> targets) {
  auto sum = predict(step.plan, targets);
  if (!sum) {
    return std::nullopt;
  }
  sum->time = sum->time * step.micro_batches;
  for (Seconds& busy : sum->busy) {
    busy = busy * step.micro_batches;
  }
  if (step.update) {
    const auto update = predict(*step.update, targets);
    sum->time += update->time;
    for (std::size_t device = 0; device < sum->busy.size(); ++device) {
      sum->busy[device] += update->busy[device];
    }
  }
  return sum;
}

}  // namespace halfwatt
