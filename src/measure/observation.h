#pragma once

#include <optional>

#include "base/units.h"
#include "device/signal.h"
#include "measure/workload.h"

namespace halfwatt {

/// Everything the window protocol sees at one moment.
struct Observation {
  Seconds now;
  WorkDone work;
  std::optional<Joules> energy;  ///< the counter, as it shows; nullopt without one
  Sample sample;
};

}  // namespace halfwatt
