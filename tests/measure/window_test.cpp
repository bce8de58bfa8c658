#include "measure/window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/hand_made.h"
#include "measure/simulation.h"

namespace halfwatt {
namespace {

double relative_error(double found, double expected) { return std::abs(found / expected - 1); }

/// How far `value` is from a whole multiple of `unit`.
double off_multiple(double value, double unit) {
  return std::abs(value - std::round(value / unit) * unit);
}

TEST(Window, begins_and_ends_on_ticks_of_the_energy_counter) {
  for (const double begin : {0.0, 0.03, 0.0999, 17.31}) {
    const Measurement measured = run_window(HandMade{}, {}, begin);
    const double started = measured.started.value();
    EXPECT_GT(started, begin);
    EXPECT_LT(started, begin + 0.11);
    EXPECT_LT(off_multiple(started, 0.1), 0.0021) << begin;  // reads every 2 ms near an edge
    EXPECT_LT(off_multiple(started + measured.work.duration.value(), 0.1), 0.0021) << begin;
    EXPECT_EQ(measured.energy.method, EnergyMethod::counter);
  }
}

TEST(Window, lasts_at_least_20_steps_and_20_ticks_and_no_longer_than_needed) {
  for (const double step_time : {0.003, 0.05, 0.25, 1.7, 11.0}) {
    HandMade world;
    world.step_time = step_time;
    const Measurement measured = run_window(world);
    const double least = std::max(20 * step_time, 2.0);
    EXPECT_GE(measured.work.duration.value(), least - 0.003) << step_time;
    EXPECT_LE(measured.work.duration.value(), least + std::max(3 * step_time, 0.3))
        << step_time;
    EXPECT_GE(measured.work.steps, 20 - 1e-9) << step_time;
    EXPECT_TRUE(measured.notes.empty()) << step_time;
  }
}

TEST(Window, has_20_whole_steps_wherever_in_a_step_it_begins) {
  HandMade world;
  world.step_time = 0.983;
  for (int tenth = 0; tenth < 10; ++tenth) {
    EXPECT_GE(run_window(world, {}, tenth * 0.0983).work.steps, 20 - 1e-9) << tenth;
  }
}

TEST(Window, takes_more_steps_or_ticks_where_its_rules_say_so) {
  WindowRules rules;
  rules.min_steps = 100;
  EXPECT_GE(run_window(HandMade{}, rules).work.steps, 100 - 1e-9);
  rules = {};
  rules.min_ticks = 300;
  EXPECT_GE(run_window(HandMade{}, rules).work.duration, Seconds(29.99));
  rules = {};
  rules.min_duration = Seconds(40);
  EXPECT_GE(run_window(HandMade{}, rules).work.duration, Seconds(40));
}

TEST(Window, counts_fractional_steps_between_its_ends) {
  for (const double step_time : {0.01, 0.07, 0.2499, 0.9, 3.3}) {
    for (const double begin : {0.0, 0.031, 5.555}) {
      HandMade world;
      world.step_time = step_time;
      const Measurement measured = run_window(world, {}, begin);
      const double true_steps = measured.work.duration.value() / step_time;
      EXPECT_LT(relative_error(measured.work.steps, true_steps), 0.005) << step_time;
      EXPECT_LT(relative_error(measured.work.step_time.value(), step_time), 1e-6) << step_time;
    }
  }
}

TEST(Window, tells_the_interval_of_the_median_step) {
  const Measurement measured = run_window(HandMade{});
  ASSERT_TRUE(measured.work.step_time_low && measured.work.step_time_high);
  EXPECT_LE(*measured.work.step_time_low, measured.work.step_time);
  EXPECT_GE(*measured.work.step_time_high, measured.work.step_time);
}

TEST(Window, counts_the_energy_between_two_ticks_without_an_error_of_the_edges) {
  const Measurement measured = run_window(HandMade{});
  const double ticks = std::round(measured.work.duration.value() / 0.1);
  EXPECT_NEAR(measured.energy.value->value(), ticks * 0.1 * 300, 1e-6);
}

TEST(Window, ends_on_steps_and_integrates_power_where_there_is_no_counter) {
  HandMade world;
  world.has_counter = false;
  const Measurement measured = run_window(world);
  EXPECT_LT(off_multiple(measured.started.value(), 0.25), 0.0051);
  EXPECT_LT(off_multiple((measured.started + measured.work.duration).value(), 0.25), 0.0051);
  EXPECT_LT(relative_error(measured.work.steps, measured.work.duration.value() / 0.25), 0.005);
  EXPECT_EQ(measured.energy.method, EnergyMethod::power_integral);
  EXPECT_NEAR(measured.energy.value->value(), 300 * measured.work.duration.value(), 1e-6);
}

TEST(Window, knows_no_energy_where_neither_counter_nor_power_is_told) {
  HandMade world;
  world.has_counter = false;
  world.spoil = [](Observation& seen) { (*seen.sample)[SignalId::power] = std::nullopt; };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.energy.value, std::nullopt);
  EXPECT_EQ(measured.energy.method, EnergyMethod::none);
  EXPECT_TRUE(measured.notes.empty());
}

// As sim:duty does: of each 0.3 s the job runs for 0.1 s, then it is stopped.
TEST(Window, counts_the_stops_of_a_job_if_the_mean_step_time_is_asked_for) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    const double turn = std::floor(seen.now.value() / 0.3);
    const double ran = std::min(seen.now.value() - turn * 0.3, 0.1);
    const double steps_of_turn = std::floor(ran / 0.001 + 1e-9);
    seen.work = {turn * 100 + steps_of_turn, Seconds(turn * 0.3 + steps_of_turn * 0.001)};
  };
  WindowRules rules;
  rules.min_duration = Seconds(6);
  rules.max_variation = 100;
  rules.mean_step_time = true;
  const Measurement measured = run_window(world, rules);
  EXPECT_LT(relative_error(measured.work.step_time.value(), 0.003), 0.03);
  EXPECT_EQ(measured.work.step_time_low, std::nullopt);
  EXPECT_TRUE(measured.notes.empty());
}

TEST(Window, trusts_the_counter_where_power_is_not_told) {
  HandMade world;
  world.spoil = [](Observation& seen) { (*seen.sample)[SignalId::power] = std::nullopt; };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.energy.method, EnergyMethod::counter);
  EXPECT_TRUE(measured.notes.empty());
}

TEST(Window, tells_the_conditions_at_its_end) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::sm_clock] = 1700;
    (*seen.sample)[SignalId::memory_clock] = 9501;
    (*seen.sample)[SignalId::fan] = 55;
    (*seen.sample)[SignalId::memory_used] = 1e9;
    (*seen.sample)[SignalId::temperature] = 60 + seen.now.value() * 0.1;
    (*seen.sample)[SignalId::power_capped_time] = seen.now.value() / 2;
  };
  const Measurement measured = run_window(world);
  const Conditions& seen = measured.conditions;
  EXPECT_EQ(seen.requested_limit, Watts(300));
  EXPECT_EQ(seen.enforced_limit, Watts(300));
  EXPECT_EQ(seen.sm_clock, Megahertz(1700));
  EXPECT_EQ(seen.memory_clock, Megahertz(9501));
  EXPECT_EQ(seen.fan_percent, 55);
  EXPECT_EQ(seen.memory_used, Bytes(1e9));
  EXPECT_NEAR(seen.temperature_start->value(), 60 + measured.started.value() * 0.1, 1e-9);
  EXPECT_GT(*seen.temperature_end, *seen.temperature_start);
  EXPECT_NEAR(*seen.power_capped_share, 0.5, 1e-9);
  EXPECT_EQ(seen.throttled_share, 0);
}

TEST(Window, knows_no_conditions_that_the_device_does_not_tell) {
  HandMade world;
  world.spoil = [](Observation& seen) { seen.sample = Sample(); };
  const Conditions seen = run_window(world).conditions;
  EXPECT_EQ(seen.requested_limit, std::nullopt);
  EXPECT_EQ(seen.temperature_end, std::nullopt);
  EXPECT_EQ(seen.memory_used, std::nullopt);
  EXPECT_EQ(seen.power_capped_share, std::nullopt);
  EXPECT_EQ(seen.throttled_share, std::nullopt);
}

TEST(Window, is_right_about_steps_and_energy_on_a_simulated_card) {
  for (const double watts : {150.0, 163.0, 200.0, 250.0, 301.5, 350.0, 480.0}) {
    const Watts limit(watts);
    Simulation simulation;
    simulation.warm_up(limit);
    const Measurement measured = run_window(simulation, limit);
    const double step_time = simulation.workload.recorded_step_time(limit).value();
    const double shown = std::min(watts, 360.0) * CardModel{}.meter_gain;
    EXPECT_LT(relative_error(measured.work.step_time.value(), step_time), 1e-9) << watts;
    EXPECT_LT(relative_error(measured.work.steps, measured.work.duration.value() / step_time),
              0.005)
        << watts;
    EXPECT_LT(
        relative_error(measured.energy.value->value() / measured.work.steps, shown * step_time),
        0.01)
        << watts;
    EXPECT_TRUE(measured.counts()) << watts;
  }
}

}  // namespace
}  // namespace halfwatt
