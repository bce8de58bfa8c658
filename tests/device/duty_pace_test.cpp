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
  for (int i = 0; i < 3; ++i) {
    pace.allow(Seconds(0.02));
  }
  EXPECT_NEAR(pace.left().value(), 0.06, 1e-12);
  EXPECT_FALSE(pace.is_behind());
}

TEST(DutyPace, forgets_what_a_group_left_unused_for_long) {
  DutyPace pace;
  for (int i = 0; i < 100; ++i) {
    pace.allow(Seconds(0.02));
  }
  EXPECT_TRUE(pace.is_behind());
  EXPECT_LT(pace.left(), Seconds(0.2));
  pace.use(Seconds(0.1));
  EXPECT_FALSE(pace.is_behind());
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
