#include "engine/passes/preflight.h"

#include <fmt/format.h>

#include <cmath>

namespace halfwatt {
namespace {

// Half of the smallest number of the format is rounded to 0.
bool vanishes(double value, DType dtype) {
  return value != 0 && std::abs(value) <= facts(dtype).min_subnormal / 2;
}

// m / (sqrt(v) + eps) with v and eps both 0: 0 / 0 or m / 0.
void check_eps(const Precision& precision, const Optimizer& optimizer, Preflight& found) {
  if (optimizer.kind != Optimizer::Kind::adamw ||
      !vanishes(optimizer.eps, precision.arithmetic)) {
    return;
  }
  const double least =
      std::sqrt(facts(precision.moment).min_subnormal / 2 / (1 - optimizer.beta2));
  found.dies = true;
  found.reasons.push_back(
      fmt::format("{}: eps {:g} is 0 in {}, and so is the second moment of gradients below "
                  "{:.2g}: the first "
                  "step divides by 0; eps 1e-4, or a mode whose optimizer computes in fp32 "
                  "(fp16, amp-fp16), "
                  "works",
                  precision.name, optimizer.eps, text(precision.arithmetic), least));
}

// A parameter of 1 that is made smaller by less than half a step of its format stays what it
// is.
void check_decay(const Precision& precision, const Optimizer& optimizer, Preflight& found) {
  const DType stored = precision.masters ? DType::f32 : precision.parameter;
  const double step = optimizer.rate * optimizer.decay;
  if (step > 0 && !precision.stochastic && step < half_ulp(stored) / 2) {
    found.reasons.push_back(fmt::format(
        "{}: rate times decay is {:.2g}, less than a parameter in {} can change by ({:.2g} of "
        "itself): weight decay has no effect; fp32 parameters work (amp-bf16, amp-fp16)",
        precision.name, step, text(stored), half_ulp(stored) / 2));
  }
}

void check_scale(const Precision& precision, Preflight& found) {
  const bool low = facts(precision.output).exponent_bits == 5;
  if (low && precision.scale == Precision::Scale::none) {
    found.reasons.push_back(fmt::format(
        "{}: a backward in {} without loss scaling loses gradients below {:.2g}; "
        "amp-fp16 or fp16 scale the loss, bf16 needs no scale",
        precision.name, text(precision.output), facts(precision.output).min_subnormal / 2));
  }
}

}  // namespace

Preflight preflight(const Precision& precision, const Optimizer& optimizer) {
  Preflight found;
  check_eps(precision, optimizer, found);
  check_scale(precision, found);
  check_decay(precision, optimizer, found);
  return found;
}

}  // namespace halfwatt
