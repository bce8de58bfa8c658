#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "base/units.h"

namespace halfwatt {

/// How a step is cut so that it fits.
struct StepCut {
  std::int64_t batch = 0;          ///< of one micro-batch
  std::int64_t micro_batches = 1;  ///< of a step
  bool recompute = false;
};

/// Bytes that must be had beyond what there is; 0 or less: the plan fits.
using Excess = std::function<Result<double>(const StepCut& fit)>;

/// The largest micro-batch that fits: without recompute, or, where not one sample fits so, with
/// it. Of an `effective` batch its divisors are tried, the whole at once first; without one,
/// every number up to 2^16. Plans are made and nothing is run: about 2 log2 of them. nullopt:
/// nothing fits. Errors: those of `excess`.
Result<std::optional<StepCut>> largest_that_fits(std::optional<std::int64_t> effective,
                                                 const Excess& excess);

}  // namespace halfwatt
