#pragma once

#include <string>
#include <vector>

#include "engine/passes/precision.h"
#include "engine/passes/update.h"

namespace halfwatt {

/// Why a run cannot learn, told before it starts: one line for each reason, with what would
/// work; none if nothing is known against it. `dies`: the run is certain to become not finite.
struct Preflight {
  std::vector<std::string> reasons;
  bool dies = false;
};

/// Looks at what the formats of `precision` can hold of the optimizer's numbers.
Preflight preflight(const Precision& precision, const Optimizer& optimizer);

}  // namespace halfwatt
