#include "measure/simulation.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

/// A clock that has run for a while.
VirtualClock clock_at(Seconds time) {
  VirtualClock clock;
  clock.sleep_until(time);
  return clock;
}

}  // namespace

Simulation::Simulation(const Parts& parts)
    : clock(clock_at(parts.begun)),
      card({DeviceId::Kind::simulated, "card"}, parts.card, clock, parts.faults),
      workload({"test:workload", {{"precision", "fp32"}}, "image", 160},
               parts.curve,
               parts.demand,
               parts.state,
               card,
               parts.disturbance,
               parts.seed) {}

Observation Simulation::observe() {
  Observation seen;
  seen.energy = EnergyReading{card.energy(), clock.now(), clock.now()};
  seen.sample = *card.read();
  seen.now = clock.now();
  seen.work = workload.work_done();
  return seen;
}

void Simulation::warm_up(Watts limit) {
  EXPECT_TRUE(card.set_limit(limit));
  EXPECT_TRUE(workload.start());
  sleep(CardModel{}.thermal_time * kWarm);
  workload.work_done();
}

Measurement run_window(Simulation& simulation,
                       std::optional<Watts> limit,
                       const WindowRules& rules) {
  Window window(rules, {simulation.card.info().energy_tick}, limit);
  constexpr int kEnough = 1'000'000;
  for (int i = 0; i < kEnough; ++i) {
    if (window.feed(simulation.observe())) {
      return window.result();
    }
    simulation.sleep(window.pause());
  }
  ADD_FAILURE() << "the window never ends";
  return {};
}

}  // namespace halfwatt
