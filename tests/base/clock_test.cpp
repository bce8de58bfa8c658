#include "base/clock.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(VirtualClock, moves_only_when_somebody_sleeps) {
  VirtualClock clock;
  EXPECT_EQ(clock.now(), Seconds(0));
  clock.sleep_until(Seconds(3600));
  EXPECT_EQ(clock.now(), Seconds(3600));
}

TEST(VirtualClock, never_goes_back) {
  VirtualClock clock;
  clock.sleep_until(Seconds(10));
  clock.sleep_until(Seconds(5));
  EXPECT_EQ(clock.now(), Seconds(10));
}

TEST(VirtualClock, stands_still_while_the_machine_is_asleep) {
  VirtualClock clock;
  clock.sleep_until(Seconds(10));
  clock.suspend(Seconds(3600));
  EXPECT_EQ(clock.now(), Seconds(10));
  EXPECT_EQ(clock.asleep(), Seconds(3600));
}

TEST(SteadyClock, tells_the_same_sleep_while_the_machine_is_awake) {
  SteadyClock clock;
  const Seconds before = clock.asleep();
  clock.sleep_until(clock.now() + Seconds(0.02));
  EXPECT_NEAR(clock.asleep().value(), before.value(), 0.01);
}

TEST(SteadyClock, sleeps_at_least_as_long_as_asked) {
  SteadyClock clock;
  const Seconds end = clock.now() + Seconds(0.02);
  clock.sleep_until(end);
  EXPECT_GE(clock.now(), end);
}

TEST(SteadyClock, returns_at_once_when_the_time_has_passed) {
  SteadyClock clock;
  const Seconds begin = clock.now();
  clock.sleep_until(begin - Seconds(1000));
  EXPECT_LT(clock.now() - begin, Seconds(100));
}

}  // namespace
}  // namespace halfwatt
