#include "engine/train/numerical_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfwatt {
namespace {

// Section 1.12 of the facts on mixed precision.
constexpr std::size_t kWindow = 50;
constexpr double kMostSkipped = 0.5;
constexpr double kMostUnchanged = 0.99;
// A schedule that ends at 0 is meant to stand still at its end.
constexpr double kLeastRate = 1e-3;

}  // namespace

NumericalState NumericalWatch::see(const StepNumbers& step) {
  memory_.skipped.push_back(step.skipped);
  if (memory_.skipped.size() > kWindow) {
    memory_.skipped.pop_front();
  }
  if (memory_.state != NumericalState::dead) {
    memory_.reason.clear();
    memory_.state = judge(step);
  }
  return memory_.state;
}

NumericalState NumericalWatch::judge(const StepNumbers& step) {
  if (step.not_finite > 0) {
    memory_.reason = fmt::format("{} of {} parameters are not finite, the first in {}",
                                 step.not_finite, step.parameters, step.first_bad);
    return NumericalState::dead;
  }
  if (!std::isfinite(step.loss) && !step.skipped) {
    memory_.reason = fmt::format("the loss is {}", step.loss);
    return NumericalState::dead;
  }
  if (step.skipped && step.scale && *step.scale <= step.least_scale) {
    memory_.reason = fmt::format(
        "gradients overflow at the least loss scale, {:g}, the first in {}; bf16 needs no "
        "scale",
        step.least_scale, step.first_bad);
    return NumericalState::dead;
  }
  const auto skips =
      static_cast<double>(std::count(memory_.skipped.begin(), memory_.skipped.end(), true));
  if (skips > kMostSkipped * static_cast<double>(kWindow)) {
    memory_.reason = fmt::format("{:g} of the last {} steps were skipped, the last over {}",
                                 skips, memory_.skipped.size(), step.first_bad);
    return NumericalState::skipping;
  }
  if (!step.skipped && step.rate_share >= kLeastRate &&
      static_cast<double>(step.unchanged) >
          kMostUnchanged * static_cast<double>(step.parameters)) {
    memory_.reason = fmt::format("the step changed {} of {} parameters",
                                 step.parameters - step.unchanged, step.parameters);
    return NumericalState::stalled;
  }
  return NumericalState::live;
}

}  // namespace halfwatt
