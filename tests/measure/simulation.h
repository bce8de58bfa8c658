#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "device/simulated.h"
#include "measure/observation.h"
#include "measure/recorded_workload.h"
#include "measure/window.h"

namespace halfwatt {

/// A simulated card with a recorded workload on it; begins idle, at the given time.
struct Simulation {
  struct Parts {
    std::vector<RecordedPoint> curve = {
        {Watts(150), Seconds(0.4)}, {Watts(250), Seconds(0.25)}, {Watts(350), Seconds(0.2)}};
    Watts demand{360};
    CardModel card;
    std::vector<Fault> faults;
    Disturbance disturbance;
    NumericalState state = NumericalState::live;
    std::uint64_t seed = 1;
    Seconds begun{0};
  };
  Simulation() : Simulation(Parts{}) {}
  explicit Simulation(const Parts& parts);

  void sleep(Seconds duration) { clock.sleep_until(clock.now() + duration); }
  Observation observe();
  /// Sets `limit`, lets the workload run until the card is warm.
  void warm_up(Watts limit);

  VirtualClock clock;
  SimulatedCard card;
  RecordedWorkload workload;
};

/// Feeds a window until it is over; `feed` after too many observations fails the test.
Measurement run_window(Simulation& simulation,
                       std::optional<Watts> limit,
                       const WindowRules& rules = {});

/// The time constant of the card's heat times this is "warm".
inline constexpr double kWarm = 10;

}  // namespace halfwatt
