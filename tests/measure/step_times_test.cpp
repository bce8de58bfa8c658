#include "measure/step_times.h"

#include <gtest/gtest.h>

#include <cmath>

namespace halfwatt {
namespace {

/// A job whose steps take 0.1 s and that tells every `stride` of them.
WorkDone told(double time, double stride) {
  const double steps = std::floor(time / 0.1 / stride + 1e-9) * stride;
  return {steps, Seconds(steps * 0.1)};
}

StepTimes seen_from(double begin, double end, double stride) {
  StepTimes times;
  WorkDone before = told(begin, stride);
  for (double now = begin; now < end; now += 0.05) {
    const WorkDone work = told(now, stride);
    times.see(before, work, Seconds(begin));
    before = work;
  }
  return times;
}

TEST(StepTimes, are_known_after_a_step) {
  StepTimes times;
  EXPECT_FALSE(times.are_known());
  EXPECT_EQ(times.last(), std::nullopt);
  times.see({10, Seconds(0.9)}, {11, Seconds(1.1)}, Seconds(1));
  EXPECT_TRUE(times.are_known());
  EXPECT_NEAR(*times.last(), 0.2, 1e-9);
}

TEST(StepTimes, are_those_of_single_steps_where_each_tells_when_it_ended) {
  StepTimes times;
  WorkDone now{3, Seconds(1.6)};
  now.ends = {Seconds(0.9), Seconds(1.1), Seconds(1.2), Seconds(1.6)};
  times.see({0, Seconds(1)}, now, Seconds(1));
  EXPECT_NEAR(times.median().median, 0.1, 1e-9);
  EXPECT_NEAR(*times.last(), 0.4, 1e-9);
}

TEST(StepTimes, tell_quantiles_only_of_enough_steps_seen_one_by_one) {
  StepTimes times;
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(times.quantile(0.05), std::nullopt);
    const double begin = step * 10.0;
    times.see({begin, Seconds(begin)}, {begin + 1, Seconds(begin + 1 + step)}, Seconds(0));
  }
  EXPECT_NEAR(*times.quantile(0.05), 1.95, 1e-9);
  EXPECT_NEAR(*times.quantile(0.95), 19.05, 1e-9);
  times.see({500, Seconds(500)}, {502, Seconds(503)}, Seconds(0));
  EXPECT_EQ(times.quantile(0.05), std::nullopt) << "two steps were told at once";
}

TEST(StepTimes, are_known_after_two_whole_reports_of_many_steps) {
  EXPECT_FALSE(seen_from(3, 6, 50).are_known());   // 5 s: began before the window
  EXPECT_FALSE(seen_from(3, 11, 50).are_known());  // 10 s
  EXPECT_TRUE(seen_from(3, 16, 50).are_known());   // 15 s
}

TEST(StepTimes, leave_out_what_a_report_tells_of_the_time_before_the_window) {
  StepTimes times;  // 50 slow steps, told just after the window began
  times.see({0, Seconds(0)}, {50, Seconds(50)}, Seconds(49));
  times.see({50, Seconds(50)}, {100, Seconds(60)}, Seconds(49));
  times.see({100, Seconds(60)}, {150, Seconds(70)}, Seconds(49));
  EXPECT_NEAR(times.median().median, 0.2, 1e-9);
  EXPECT_NEAR(times.variation(Seconds(0)), 0, 1e-9);
}

TEST(StepTimes, vary_little_over_stretches_where_only_their_telling_is_uneven) {
  // A bar that is printed after one step or three, of a job whose steps take 0.1 s.
  StepTimes times;
  WorkDone before{0, Seconds(0)};
  for (int i = 0; i < 100; ++i) {
    const double steps = i % 2 == 0 ? 1 : 3;
    const double late = i % 3 == 0 ? 0.04 : 0;
    const WorkDone now{before.count + steps, Seconds((before.count + steps) * 0.1 + late)};
    times.see(before, now, Seconds(0));
    before = now;
  }
  EXPECT_GT(times.variation(Seconds(0)), 0.10);
  EXPECT_LT(times.variation(Seconds(1)), 0.05);
}

TEST(StepTimes, count_steps_in_fractions_between_any_two_moments) {
  for (const double stride : {1.0, 7.0, 50.0}) {
    const StepTimes times = seen_from(3, 40, stride);
    for (const double from : {3.0, 3.04, 8.33, 11.2}) {
      for (const double to : {25.0, 31.07, 34.999}) {
        const double steps = times.steps({Seconds(from), told(from, stride)},
                                         {Seconds(to), told(to, stride)}, 0.1);
        EXPECT_NEAR(steps, (to - from) / 0.1, 1e-6) << stride << " " << from << " " << to;
      }
    }
  }
}

TEST(StepTimes, count_no_steps_while_a_workload_hangs) {
  const StepTimes times = seen_from(3, 10, 1);
  const double steps = times.steps({Seconds(5), told(5, 1)}, {Seconds(100), told(10, 1)}, 0.1);
  EXPECT_NEAR(steps, 51, 1e-6);  // the one that hangs may be as good as done
}

TEST(StepTimes, know_a_step_that_ended_after_the_moment) {
  const StepTimes times = seen_from(3, 10, 1);
  const double steps = times.steps({Seconds(5), told(5, 1)}, {Seconds(8.98), told(9, 1)}, 0.1);
  EXPECT_NEAR(steps, 39.8, 1e-6);
}

}  // namespace
}  // namespace halfwatt
