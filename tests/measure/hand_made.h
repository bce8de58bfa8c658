#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "measure/window.h"

namespace halfwatt {

inline constexpr Seconds kTick{0.1};  ///< of the hand-made energy counter

/// A device and a workload made by hand, for what no simulated card does.
struct HandMade {
  double step_time = 0.25;  ///< s
  double watts = 300;
  bool has_counter = true;
  /// Changes what is seen; called last.
  std::function<void(Observation&)> spoil = [](Observation&) {};

  Observation at(double now) const {
    constexpr double kRounding = 1e-9;
    const double steps = std::floor(now / step_time + kRounding);
    Observation seen;
    seen.now = Seconds(now);
    seen.work = {steps, Seconds(steps * step_time)};
    if (has_counter) {
      const double ticks = std::floor(now / kTick.value() + kRounding);
      seen.energy = EnergyReading{Watts(watts) * (kTick * ticks), seen.now, seen.now};
    }
    seen.sample = Sample();
    (*seen.sample)[SignalId::power] = watts;
    (*seen.sample)[SignalId::requested_limit] = 300;
    (*seen.sample)[SignalId::enforced_limit] = 300;
    (*seen.sample)[SignalId::temperature] = 65;
    (*seen.sample)[SignalId::power_capped_time] = now;
    (*seen.sample)[SignalId::throttled_time] = 0;
    (*seen.sample)[SignalId::foreign_processes] = 0;
    spoil(seen);
    return seen;
  }
};

/// One window of it from `begin` on, under a limit of 300 W.
inline Measurement run_window(const HandMade& world,
                              const WindowRules& rules = {},
                              double begin = 0.03) {
  Window window(rules, {world.has_counter ? std::optional(kTick) : std::nullopt}, Watts(300));
  constexpr int kEnough = 1'000'000;
  double now = begin;
  for (int i = 0; i < kEnough; ++i) {
    if (window.feed(world.at(now))) {
      return window.result();
    }
    now += window.pause().value();
  }
  ADD_FAILURE() << "the window never ends";
  return {};
}

}  // namespace halfwatt
