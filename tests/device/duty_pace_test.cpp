#include "device/duty_pace.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(DutyPace, leaves_what_came_due_less_what_was_used) {
  DutyPace pace;
  EXPECT_EQ(pace.left(), Seconds(0));
  pace.allow(Seconds(0.02));
  pace.use(Seconds(0.005));
  EXPECT_NEAR(pace.left().value(), 0.015, 1e-12);
}

TEST(DutyPace, takes_what_was_used_too_much_off_the_next_turns) {
  DutyPace pace;
  pace.allow(Seconds(0.02));
  pace.use(Seconds(0.05));
  pace.allow(Seconds(0.02));
  EXPECT_LT(pace.left(), Seconds(0));
  pace.allow(Seconds(0.02));
  EXPECT_NEAR(pace.left().value(), 0.01, 1e-12);
}

TEST(DutyPace, gives_later_what_others_took_for_a_moment) {
  DutyPace pace;
  EXPECT_EQ(pace.allow(Seconds(0.01)), Seconds(0));
  EXPECT_EQ(pace.allow(Seconds(0.01)), Seconds(0));
  EXPECT_NEAR(pace.left().value(), 0.02, 1e-12);
}

TEST(DutyPace, tells_what_is_lost_for_a_group_that_used_nothing_for_long) {
  DutyPace pace;
  Seconds lost;
  for (int i = 0; i < 100; ++i) {
    lost += pace.allow(Seconds(0.02));
  }
  EXPECT_LT(pace.left(), Seconds(0.1));
  EXPECT_NEAR((lost + pace.left()).value(), 2, 1e-9);
  pace.use(Seconds(0.03));
  EXPECT_EQ(pace.allow(Seconds(0.02)), Seconds(0));
}

TEST(DutyPace, forgets_what_a_group_used_too_much_long_ago) {
  DutyPace pace;
  pace.use(Seconds(100));
  pace.allow(Seconds(0.1));
  pace.allow(Seconds(0.1));
  EXPECT_GT(pace.left(), Seconds(0));
}

}  // namespace
}  // namespace halfwatt
