// What a window asks for, and what it makes of readings that take time or tell little.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "measure/hand_made.h"

namespace halfwatt {
namespace {

constexpr Seconds kSensor{0.1};

/// A window that is given what it asks for and nothing else.
struct Asked {
  HandMade world;
  std::function<Seconds()> call = [] { return Seconds(0); };  ///< how long one for energy takes
  double read_at = 0.5;  ///< where within the call the counter is read

  struct Look {
    double at = 0;
    Wanted wanted;
  };
  std::vector<Look> looks;

  Measurement run(double begin = 0.03, const WindowRules& rules = {}) {
    const auto tick = world.has_counter ? std::optional(kTick) : std::nullopt;
    Window window(rules, {tick, kSensor}, Watts(300));
    double now = begin;
    constexpr int kEnough = 1'000'000;
    for (int i = 0; i < kEnough; ++i) {
      looks.push_back({now, window.wants()});
      if (window.feed(look(now, looks.back().wanted))) {
        return window.result();
      }
      now += window.pause().value();
    }
    ADD_FAILURE() << "the window never ends";
    return {};
  }

  /// Moves `now` by what the calls take.
  Observation look(double& now, const Wanted& wanted) const {
    std::optional<EnergyReading> reading;
    if (wanted.energy) {
      const Seconds begun(now);
      const double took = call().value();
      reading = world.at(now + took * read_at).energy;
      now += took;
      if (reading) {
        reading->begun = begun;
        reading->ended = Seconds(now);
      }
    }
    Observation seen = world.at(now);
    seen.energy = reading;
    if (wanted.sample == SampleDetail::none) {
      seen.sample = std::nullopt;
    } else if (wanted.sample == SampleDetail::quick) {
      (*seen.sample)[SignalId::temperature] = std::nullopt;
      (*seen.sample)[SignalId::foreign_processes] = std::nullopt;
    }
    return seen;
  }

  double count(double from, double to, const std::function<bool(const Wanted&)>& which) const {
    double found = 0;
    for (const Look& each : looks) {
      found += each.at > from && each.at < to && which(each.wanted) ? 1 : 0;
    }
    return found;
  }
};

bool reads_energy(const Wanted& wanted) { return wanted.energy; }
bool samples(const Wanted& wanted) { return wanted.sample != SampleDetail::none; }
bool samples_all(const Wanted& wanted) { return wanted.sample == SampleDetail::full; }

TEST(WindowReadings, are_of_the_counter_alone_while_an_edge_is_looked_for) {
  Asked asked;
  const Measurement measured = asked.run();
  const double begin = measured.started.value();
  const double end = begin + measured.work.duration.value();
  EXPECT_EQ(asked.count(0.031, begin - 1e-6, samples), 0);
  EXPECT_GT(asked.count(0.031, begin - 1e-6, reads_energy), 30);
  // The same at its end, however long that takes: 2 ms apart, and nothing else.
  double alone = 0;
  for (auto each = asked.looks.rbegin() + 1; !samples(each->wanted); ++each) {
    EXPECT_NEAR(each->at, end - alone * 0.002, 1e-6);
    ++alone;
  }
  EXPECT_GT(alone, 5);
}

TEST(WindowReadings, are_within_it_as_rare_as_a_sensor_and_a_slow_counter_need) {
  Asked asked;
  const Measurement measured = asked.run();
  const double from = measured.started.value() + 1e-6;
  const double to = from + 4;
  EXPECT_NEAR(asked.count(from, to, samples), 80, 2);      // twice in 100 ms
  EXPECT_NEAR(asked.count(from, to, samples_all), 4, 1);   // once a second
  EXPECT_NEAR(asked.count(from, to, reads_energy), 4, 1);  // once a second
  EXPECT_TRUE(measured.notes.empty());
}

TEST(WindowReadings, of_all_signals_stand_right_behind_both_edges) {
  Asked asked;
  asked.world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::temperature] = 60 + seen.now.value() * 0.1;
  };
  const Measurement measured = asked.run();
  const double end = measured.started.value() + measured.work.duration.value();
  EXPECT_NEAR(measured.conditions.temperature_start->value(),
              60 + measured.started.value() * 0.1, 1e-6);
  EXPECT_NEAR(measured.conditions.temperature_end->value(), 60 + end * 0.1, 1e-6);
}

TEST(WindowReadings, that_take_milliseconds_do_not_bias_its_ends) {
  Rng rng(7);
  for (const double read_at : {0.0, 0.5, 1.0}) {
    for (const double begin : {0.0, 0.0413, 3.3}) {
      Asked asked;
      asked.world.step_time = 0.05;
      asked.call = [&rng] { return Seconds(0.002 + 0.006 * rng.uniform()); };
      asked.read_at = read_at;
      const Measurement measured = asked.run(begin);
      ASSERT_TRUE(measured.notes.empty());
      const double off =
          std::abs((*measured.energy.value / measured.work.duration).value() / 300 - 1);
      EXPECT_LE(off, *measured.energy.window_error) << read_at << " " << begin;
      EXPECT_LT(*measured.energy.window_error, 2 * 0.018 / measured.work.duration.value());
      EXPECT_NEAR(measured.work.steps, measured.work.duration.value() / 0.05, 0.01);
    }
  }
}

TEST(WindowReadings, tell_an_error_that_shrinks_with_the_window_and_grows_with_the_call) {
  const auto error = [](double call, double seconds) {
    Asked asked;
    asked.call = [call] { return Seconds(call); };
    WindowRules rules;
    rules.min_duration = Seconds(seconds);
    return *asked.run(0.03, rules).energy.window_error;
  };
  EXPECT_NEAR(error(0, 10), 2 * 0.002 / 10, 1e-5);
  EXPECT_NEAR(error(0.004, 10), 2 * 0.010 / 10, 1e-4);
  EXPECT_NEAR(error(0.004, 20), error(0.004, 10) / 2, 1e-4);
}

TEST(WindowReadings, of_a_counter_that_is_silent_are_followed_by_one_that_tells_a_lost_card) {
  Window window({}, {kTick, kSensor}, std::nullopt);
  Asked asked;
  double now = 0;
  window.feed(asked.look(now, window.wants()));
  ASSERT_FALSE(samples(window.wants()));
  Observation silent = asked.world.at(0.01);
  silent.sample = std::nullopt;
  silent.energy->value = std::nullopt;
  window.feed(silent);
  EXPECT_TRUE(samples_all(window.wants()));
}

TEST(WindowReadings, without_a_counter_never_ask_for_it) {
  Asked asked;
  asked.world.has_counter = false;
  const Measurement measured = asked.run();
  EXPECT_EQ(asked.count(0, 100, reads_energy), 0);
  EXPECT_EQ(measured.energy.method, EnergyMethod::power_integral);
  EXPECT_NEAR(measured.energy.value->value(), 300 * measured.work.duration.value(), 1e-6);
  EXPECT_NEAR(*measured.energy.window_error, 0, 1e-6);
}

TEST(WindowReadings, without_a_counter_run_from_step_to_step) {
  Asked asked;
  asked.world.has_counter = false;
  asked.world.step_time = 0.2503;
  const Measurement measured = asked.run();
  const double steps = measured.work.steps;
  EXPECT_NEAR(steps, std::round(steps), 1e-9);
  EXPECT_NEAR(measured.work.duration.value(), steps * 0.2503, 1e-9);
}

TEST(WindowReadings, without_a_counter_follow_power_that_swings) {
  Asked asked;
  asked.world.has_counter = false;
  const auto watts = [](double time) { return 300 + 100 * std::sin(time); };
  asked.world.spoil = [&](Observation& seen) {
    (*seen.sample)[SignalId::power] = watts(seen.now.value());
  };
  const Measurement measured = asked.run();
  const double from = measured.started.value();
  const double to = from + measured.work.duration.value();
  const double truth = 300 * (to - from) + 100 * (std::cos(from) - std::cos(to));
  EXPECT_NEAR(measured.energy.value->value() / truth, 1, 0.001);
  EXPECT_GT(*measured.energy.window_error, 0.01);
}

/// A job that logs every 50 steps of 30 ms: 1.5 s apart.
HandMade logs_every_fifty(double step_time = 0.03) {
  HandMade world;
  world.step_time = step_time;
  world.spoil = [step_time](Observation& seen) {
    seen.work.count = std::floor(seen.now.value() / (50 * step_time) + 1e-9) * 50;
    seen.work.at = Seconds(seen.work.count * step_time);
  };
  return world;
}

TEST(WindowReadings, of_a_job_that_logs_every_fifty_steps_give_the_right_fraction_of_them) {
  for (const double begin : {0.0, 0.7, 1.49, 20.2}) {
    Asked asked;
    asked.world = logs_every_fifty();
    const Measurement measured = asked.run(begin);
    EXPECT_TRUE(measured.notes.empty());
    EXPECT_NEAR(measured.work.step_time.value(), 0.03, 1e-9);
    EXPECT_NEAR(measured.work.steps, measured.work.duration.value() / 0.03, 0.1) << begin;
    EXPECT_LT(measured.work.duration, Seconds(6.5));
  }
}

TEST(WindowReadings, of_a_job_that_logs_every_fifty_steps_take_no_speed_from_before_it) {
  Asked asked;
  asked.world = logs_every_fifty();
  const auto spoil = asked.world.spoil;
  asked.world.spoil = [&](Observation& seen) {
    spoil(seen);  // the steps until 1.5 s took longer: they began long before
    seen.work.at = seen.work.count < 50 ? Seconds(-3) : seen.work.at;
  };
  const Measurement measured = asked.run(1.3);
  EXPECT_TRUE(measured.notes.empty());
  EXPECT_NEAR(measured.work.step_time.value(), 0.03, 1e-9);
}

TEST(WindowReadings, without_a_counter_run_from_one_report_of_fifty_steps_to_another) {
  Asked asked;
  asked.world = logs_every_fifty();
  asked.world.has_counter = false;
  const Measurement measured = asked.run(0.7);
  EXPECT_NEAR(measured.work.steps, std::round(measured.work.steps / 50) * 50, 1e-9);
  EXPECT_NEAR(measured.work.duration.value(), measured.work.steps * 0.03, 1e-9);
  EXPECT_NEAR(measured.energy.value->value(), 300 * measured.work.duration.value(), 1e-6);
}

}  // namespace
}  // namespace halfwatt
