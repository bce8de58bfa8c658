#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/command.h"
#include "device/simulated.h"
#include "guard/simulated_limit.h"
#include "measure/recorded_workload.h"
#include "tune/playback.h"

namespace halfwatt {

/// A simulated card with a recorded workload on it, and the clock that both live on.
struct Simulation {
  VirtualClock clock;
  SimulatedCard card;
  RecordedWorkload workload;
  SimulatedLimit limit;

  Simulation(const DeviceId& device,
             const RecordedSeries& series,
             const Disturbance& disturbance,
             std::uint64_t seed);
};

/// What disturbs a simulated run unless flags say otherwise: a quiet card. Invented figures.
Disturbance usual_disturbance();

/// The flags that only a simulated device takes.
std::vector<Option> simulation_options();

/// The recorded series behind `sim:rtx3090` or `sim:FILE.csv`. Errors: an unknown device, or a
/// file that cannot be read or played back.
Result<std::vector<RecordedSeries>> series_of(const DeviceId& device);

/// The series called `name`. Errors: none of that name, with the names that there are.
Result<RecordedSeries> find_workload(const std::vector<RecordedSeries>& all,
                                     const std::optional<std::string>& name);

/// The simulation that --noise, --drift, --ramp and --seed describe.
Result<std::unique_ptr<Simulation>> open_simulation(const Invocation& invocation,
                                                    const DeviceId& device,
                                                    const RecordedSeries& series);

}  // namespace halfwatt
