#pragma once

#include <optional>

#include "base/units.h"
#include "device/signal.h"
#include "measure/workload.h"

namespace halfwatt {

/// One look at the energy counter.
struct EnergyReading {
  std::optional<Joules> value;  ///< nullopt: it did not answer, or there is none
  Seconds begun;                ///< of the call, which can take milliseconds
  Seconds ended;

  /// When the value was that of the counter. The call tells it at some moment between its two
  /// ends: their middle is off by half of its duration at most, either end by all of it.
  Seconds at() const { return begun + (ended - begun) / 2; }
};

enum class SampleDetail {
  none,
  quick,  ///< what one cheap call tells: power, limits, times under limits
  full,   ///< all signals
};

/// What the next observation is to hold; the time and the work are in each.
struct Wanted {
  bool energy = false;
  SampleDetail sample = SampleDetail::none;
};

/// Everything the window protocol sees at one moment. What was not asked for is absent, which
/// is not the same as a device that does not tell it: that has no value within its reading.
struct Observation {
  Seconds now;  ///< when all of it had been read
  WorkDone work;
  std::optional<EnergyReading> energy;
  std::optional<Sample> sample;
  Seconds asleep{0};  ///< how long the machine has been suspended so far
};

}  // namespace halfwatt
