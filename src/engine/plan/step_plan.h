#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/plan/plan.h"

namespace halfwatt {

/// All that a step is: one plan, or one that is carried out for each micro-batch and one that
/// updates after the last of them. Both share states, and one arena of the larger size.
struct StepPlan {
  Plan plan;
  std::optional<Plan> update = {};
  int micro_batches = 1;

  /// Bytes that it holds on one device.
  Footprint footprint(int device) const;
};

/// Lowers what the passes made. Errors: as lower().
Result<StepPlan> lower_step(const Graph& graph,
                            const std::optional<Graph>& update,
                            int micro_batches,
                            std::span<const Target> targets);

/// How long something takes, and how long each device works in that time.
struct StepTime {
  Seconds time;
  std::vector<Seconds> busy = {};
};

/// The time of a plan by the rates of its devices: each carries out its steps in order, one as
/// soon as those that it waits for are done. nullopt: a device whose rates are unknown.
std::optional<StepTime> predict(const Plan& plan, std::span<const Target> targets);
/// The same of all micro-batches and the update.
std::optional<StepTime> predict(const StepPlan& step, std::span<const Target> targets);

}  // namespace halfwatt
