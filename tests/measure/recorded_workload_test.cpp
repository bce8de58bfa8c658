#include "measure/recorded_workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "measure/simulation.h"

namespace halfwatt {
namespace {

using Values = std::vector<double>;

/// Steps of 0.25 s under every limit, so that only the disturbance varies.
Simulation::Parts level(const Disturbance& disturbance, std::uint64_t seed = 1) {
  Simulation::Parts parts;
  parts.curve = {{Watts(300), Seconds(0.25)}};
  parts.disturbance = disturbance;
  parts.seed = seed;
  return parts;
}

/// Step times of the next `count` steps.
Values step_times(Simulation& simulation, int count) {
  Values times;
  WorkDone last = simulation.workload.work_done();
  while (static_cast<int>(times.size()) < count) {
    simulation.sleep(Seconds(0.02));
    const WorkDone done = simulation.workload.work_done();
    if (done.count == last.count + 1) {
      times.push_back((done.at - last.at).value());
    }
    EXPECT_LE(done.count, last.count + 1);
    last = done;
  }
  return times;
}

double mean(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

double deviation(const Values& values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - centre) * (value - centre);
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(RecordedWorkload, takes_what_was_recorded_at_the_recorded_limits) {
  const Simulation simulation;
  EXPECT_EQ(simulation.workload.recorded_step_time(Watts(150)), Seconds(0.4));
  EXPECT_EQ(simulation.workload.recorded_step_time(Watts(250)), Seconds(0.25));
  EXPECT_EQ(simulation.workload.recorded_step_time(Watts(350)), Seconds(0.2));
}

TEST(RecordedWorkload, interpolates_linearly_between_recorded_limits) {
  const Simulation simulation;
  EXPECT_DOUBLE_EQ(simulation.workload.recorded_step_time(Watts(200)).value(), 0.325);
  EXPECT_DOUBLE_EQ(simulation.workload.recorded_step_time(Watts(275)).value(), 0.2375);
}

TEST(RecordedWorkload, takes_the_nearest_recorded_limit_outside_of_them) {
  const Simulation simulation;
  EXPECT_EQ(simulation.workload.recorded_step_time(Watts(100)), Seconds(0.4));
  EXPECT_EQ(simulation.workload.recorded_step_time(Watts(480)), Seconds(0.2));
}

TEST(RecordedWorkload, does_steps_only_while_it_runs) {
  Simulation simulation;
  simulation.sleep(Seconds(10));
  EXPECT_EQ(simulation.workload.work_done().count, 0);
  ASSERT_TRUE(simulation.workload.start());
  simulation.sleep(Seconds(10.1));
  EXPECT_EQ(simulation.workload.work_done().count, 50);  // 390 W: the recorded 0.2 s
  EXPECT_NEAR(simulation.workload.work_done().at.value(), 20, 1e-9);
  simulation.workload.stop();
  simulation.sleep(Seconds(10));
  EXPECT_EQ(simulation.workload.work_done().count, 50);
}

TEST(RecordedWorkload, loads_the_card_while_it_runs_and_leaves_it_idle) {
  Simulation simulation;
  const auto watts = [&] {
    return *simulation.card.read()->operator[](SignalId::power) / 0.97;
  };
  EXPECT_DOUBLE_EQ(watts(), 30);
  ASSERT_TRUE(simulation.workload.start());
  EXPECT_DOUBLE_EQ(watts(), 360);
  simulation.workload.stop();
  EXPECT_DOUBLE_EQ(watts(), 30);
}

TEST(RecordedWorkload, begins_anew_after_a_stop) {
  Simulation simulation;
  ASSERT_TRUE(simulation.workload.start());
  simulation.sleep(Seconds(10));
  simulation.workload.work_done();
  simulation.workload.stop();
  simulation.sleep(Seconds(5));
  ASSERT_TRUE(simulation.workload.start());
  EXPECT_EQ(simulation.workload.work_done().count, 0);
  simulation.sleep(Seconds(1.1));
  EXPECT_EQ(simulation.workload.work_done().count, 5);
}

TEST(RecordedWorkload, takes_longer_under_a_lower_limit) {
  Simulation simulation;
  ASSERT_TRUE(simulation.workload.start());
  ASSERT_TRUE(simulation.card.set_limit(Watts(150)));
  step_times(simulation, 1);  // the step under way keeps its time
  EXPECT_NEAR(mean(step_times(simulation, 10)), 0.4, 1e-9);
}

TEST(RecordedWorkload, takes_longer_while_the_card_throttles) {
  Simulation::Parts parts = level({});
  parts.faults = {Fault{Fault::Kind::thermal_throttle, Seconds(10), Seconds(1000), 0.5}};
  Simulation simulation(parts);
  ASSERT_TRUE(simulation.workload.start());
  EXPECT_NEAR(mean(step_times(simulation, 30)), 0.25, 1e-9);
  simulation.sleep(Seconds(10));
  simulation.workload.work_done();
  EXPECT_NEAR(mean(step_times(simulation, 10)), 0.375, 1e-9);
}

TEST(RecordedWorkload, says_what_it_is) {
  const Simulation simulation;
  EXPECT_EQ(simulation.workload.info().name, "test:workload");
  EXPECT_TRUE(simulation.workload.knobs().empty());
  EXPECT_FALSE(simulation.workload.predict(Setting()).has_value());
}

TEST(Disturbance, changes_nothing_unless_it_is_asked_for) {
  Simulation simulation(level({}));
  ASSERT_TRUE(simulation.workload.start());
  for (const double time : step_times(simulation, 50)) {
    EXPECT_NEAR(time, 0.25, 1e-9);
  }
}

TEST(Disturbance, of_a_window_is_the_same_for_its_steps_and_new_for_the_next) {
  constexpr int kWindows = 2000;
  Simulation simulation(level({.window_noise = 0.01}));
  ASSERT_TRUE(simulation.workload.start());
  Values factors;
  for (int i = 0; i < kWindows; ++i) {
    ASSERT_TRUE(simulation.workload.apply(Setting()));
    step_times(simulation, 1);  // the step under way keeps its time
    const Values times = step_times(simulation, 3);
    EXPECT_LT(deviation(times), 1e-9);
    factors.push_back(times.front() / 0.25);
  }
  EXPECT_NEAR(mean(factors), 1, 4 * 0.01 / std::sqrt(kWindows));
  EXPECT_NEAR(deviation(factors), 0.01, 4 * 0.01 / std::sqrt(2 * kWindows));
}

TEST(Disturbance, makes_the_share_of_windows_slower_that_it_says) {
  constexpr int kWindows = 4000;
  Simulation simulation(level({.outlier_share = 0.1, .outlier_size = 0.03}));
  ASSERT_TRUE(simulation.workload.start());
  int outliers = 0;
  for (int i = 0; i < kWindows; ++i) {
    ASSERT_TRUE(simulation.workload.apply(Setting()));
    step_times(simulation, 1);
    const double factor = step_times(simulation, 1).front() / 0.25;
    const bool outlier = factor > 1.01;
    EXPECT_NEAR(factor, outlier ? 1.03 : 1, 1e-9);
    outliers += outlier ? 1 : 0;
  }
  EXPECT_NEAR(outliers / static_cast<double>(kWindows), 0.1, 4 * std::sqrt(0.09 / kWindows));
}

TEST(Disturbance, drifts_with_the_deviation_and_correlation_time_that_it_says) {
  constexpr int kSteps = 120'000;
  constexpr int kLag = 80;  // steps of 0.25 s: the correlation time
  Simulation simulation(level({.drift = 0.01, .drift_time = Seconds(20)}));
  ASSERT_TRUE(simulation.workload.start());
  Values drift = step_times(simulation, kSteps);
  for (double& value : drift) {
    value = value / 0.25 - 1;
  }
  double product = 0;
  for (std::size_t i = kLag; i < drift.size(); ++i) {
    product += drift[i] * drift[i - kLag] / static_cast<double>(drift.size() - kLag);
  }
  // As if every 2 correlation times gave one independent value.
  const double independent = kSteps / (2.0 * kLag);
  EXPECT_NEAR(mean(drift), 0, 4 * 0.01 / std::sqrt(independent));
  EXPECT_NEAR(deviation(drift), 0.01, 4 * 0.01 / std::sqrt(2 * independent));
  EXPECT_NEAR(product / 0.0001, std::exp(-1), 4 / std::sqrt(independent));
}

TEST(Disturbance, drifts_from_the_first_step_on) {
  Values first;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Simulation simulation(level({.drift = 0.01}, seed));
    ASSERT_TRUE(simulation.workload.start());
    first.push_back(step_times(simulation, 1).front() / 0.25 - 1);
  }
  EXPECT_NEAR(deviation(first), 0.01, 4 * 0.01 / std::sqrt(2 * 400.0));
}

TEST(Disturbance, slows_down_as_the_case_warms) {
  Simulation simulation(level({.thermal_ramp = 0.02, .ramp_time = Seconds(900)}));
  ASSERT_TRUE(simulation.workload.start());
  EXPECT_NEAR(step_times(simulation, 1).front() / 0.25, 1, 1e-6);
  simulation.sleep(Seconds(900));
  simulation.workload.work_done();
  EXPECT_NEAR(mean(step_times(simulation, 3)) / 0.25, 1 + 0.02 * (1 - std::exp(-1)), 1e-4);
  simulation.sleep(Seconds(9000));
  simulation.workload.work_done();
  EXPECT_NEAR(mean(step_times(simulation, 3)) / 0.25, 1.02, 1e-5);
}

TEST(Disturbance, starts_cold) {
  Simulation simulation(level({.cold_start = 0.5, .cold_time = Seconds(10)}));
  ASSERT_TRUE(simulation.workload.start());
  EXPECT_NEAR(step_times(simulation, 1).front() / 0.25, 1.5, 1e-9);
  simulation.sleep(Seconds(100));
  simulation.workload.work_done();
  EXPECT_NEAR(mean(step_times(simulation, 3)) / 0.25, 1, 1e-3);
}

TEST(Disturbance, jitters_from_step_to_step) {
  constexpr int kSteps = 4000;
  Simulation simulation(level({.step_jitter = 0.02}));
  ASSERT_TRUE(simulation.workload.start());
  EXPECT_NEAR(deviation(step_times(simulation, kSteps)) / 0.25, 0.02,
              4 * 0.02 / std::sqrt(2.0 * kSteps));
}

TEST(Disturbance, never_ends_a_step_before_it_began) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Simulation simulation(level({.window_noise = 0.5, .drift = 0.5, .step_jitter = 0.5}, seed));
    ASSERT_TRUE(simulation.workload.start());
    WorkDone last = simulation.workload.work_done();
    for (int window = 0; window < 50; ++window) {
      ASSERT_TRUE(simulation.workload.apply(Setting()));
      simulation.sleep(Seconds(5));
      const WorkDone done = simulation.workload.work_done();
      EXPECT_GT(done.at, last.at);
      last = done;
    }
    EXPECT_LT(last.count, 50 * 5 / (0.25 * 0.05));
  }
}

TEST(Disturbance, is_the_same_for_the_same_seed) {
  const Disturbance all{.window_noise = 0.01,
                        .drift = 0.01,
                        .outlier_share = 0.2,
                        .thermal_ramp = 0.02,
                        .cold_start = 0.1,
                        .step_jitter = 0.01};
  const auto run = [&all](std::uint64_t seed) {
    Simulation simulation(level(all, seed));
    EXPECT_TRUE(simulation.workload.start());
    Values times;
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(simulation.workload.apply(Setting()));
      const Values some = step_times(simulation, 10);
      times.insert(times.end(), some.begin(), some.end());
    }
    return times;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

}  // namespace
}  // namespace halfwatt
