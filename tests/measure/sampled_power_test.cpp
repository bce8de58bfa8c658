#include "measure/sampled_power.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

SampledPower ramp() {
  SampledPower power;  // 100 W at 1 s to 300 W at 3 s, then steady
  for (const auto& [at, watts] : {std::pair{1.0, 100.0}, {2.0, 200.0}, {3.0, 300.0}}) {
    power.add(Seconds(at), Watts(watts));
  }
  return power;
}

TEST(SampledPower, is_summed_between_any_two_moments) {
  const SampledPower power = ramp();
  EXPECT_NEAR(power.between(Seconds(1), Seconds(3)).value(), 400, 1e-9);
  EXPECT_NEAR(power.between(Seconds(1.5), Seconds(2.5)).value(), 200, 1e-9);
  EXPECT_NEAR(power.between(Seconds(2.25), Seconds(2.75)).value(), 125, 1e-9);
}

TEST(SampledPower, stays_as_it_is_before_the_first_sample_and_after_the_last) {
  const SampledPower power = ramp();
  EXPECT_NEAR(power.between(Seconds(0), Seconds(1)).value(), 100, 1e-9);
  EXPECT_NEAR(power.between(Seconds(3), Seconds(5)).value(), 600, 1e-9);
  EXPECT_EQ(power.between(Seconds(2), Seconds(2)), Joules(0));
  EXPECT_EQ(power.between(Seconds(3), Seconds(2)), Joules(0));
}

TEST(SampledPower, is_unknown_where_one_sample_did_not_tell_it) {
  SampledPower power;
  EXPECT_FALSE(power.is_known());
  EXPECT_EQ(power.between(Seconds(0), Seconds(1)), Joules(0));
  power.add(Seconds(1), Watts(100));
  EXPECT_TRUE(power.is_known());
  power.add(Seconds(2), std::nullopt);
  EXPECT_FALSE(power.is_known());
}

TEST(SampledPower, is_surer_the_more_samples_there_are_and_the_less_they_differ) {
  const auto error = [](double swing, int samples) {
    SampledPower power;
    for (int i = 0; i < samples; ++i) {
      power.add(Seconds(i * 0.1), Watts(300 + (i % 2 == 0 ? swing : -swing)));
    }
    return *power.error(Seconds(0), Seconds(samples * 0.1), Seconds(0.1));
  };
  EXPECT_NEAR(error(0, 100), 0, 1e-9);
  EXPECT_NEAR(error(30, 100), 2 * 0.1 / 10, 1e-3);
  EXPECT_NEAR(error(30, 400), error(30, 100) / 2, 1e-3);
}

TEST(SampledPower, counts_a_reading_once_however_often_it_was_read) {
  SampledPower power;
  for (int i = 0; i < 1000; ++i) {
    power.add(Seconds(i * 0.01), Watts((i / 10) % 2 == 0 ? 330 : 270));
  }
  EXPECT_NEAR(*power.error(Seconds(0), Seconds(10), Seconds(0.1)), 2 * 0.1 / 10, 1e-3);
}

TEST(SampledPower, tells_no_error_from_next_to_no_samples) {
  SampledPower power;
  EXPECT_EQ(power.error(Seconds(0), Seconds(1), Seconds(0.1)), std::nullopt);
  power.add(Seconds(0), Watts(300));
  power.add(Seconds(1), Watts(300));
  EXPECT_EQ(power.error(Seconds(0), Seconds(1), Seconds(0.1)), std::nullopt);
}

}  // namespace
}  // namespace halfwatt
