#include "progress/losses.h"

#include <gtest/gtest.h>

#include <limits>

namespace halfwatt {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Losses, are_unknown_where_none_was_told) {
  EXPECT_EQ(state_between({}, {}), NumericalState::unknown);
  Losses losses;
  losses.see(1, "1");
  EXPECT_EQ(state_between(losses.counts(), losses.counts()), NumericalState::unknown);
}

TEST(Losses, are_live_where_they_are_finite_and_change) {
  Losses losses;
  for (int i = 0; i < 10; ++i) {
    losses.see(0.5, i < 9 ? "0.5" : "0.50001");
  }
  EXPECT_EQ(state_between({}, losses.counts()), NumericalState::live);
}

TEST(Losses, are_stalled_where_several_are_equal_to_the_last_digit) {
  Losses losses;
  for (int i = 0; i < 4; ++i) {
    losses.see(0.5, "0.5");
    EXPECT_EQ(state_between({}, losses.counts()), NumericalState::live) << "too few to say";
  }
  losses.see(0.5, "0.5");
  EXPECT_EQ(state_between({}, losses.counts()), NumericalState::stalled);
}

TEST(Losses, are_dead_where_one_is_not_finite_whatever_comes_after) {
  for (const double dead : {kNan, std::numeric_limits<double>::infinity()}) {
    Losses losses;
    losses.see(0.5, "0.5");
    losses.see(dead, "x");
    losses.see(0.4, "0.4");
    EXPECT_EQ(state_between({}, losses.counts()), NumericalState::dead);
  }
}

TEST(Losses, stay_dead_in_a_window_that_saw_none) {
  Losses losses;
  losses.see(kNan, "nan");
  EXPECT_EQ(state_between(losses.counts(), losses.counts()), NumericalState::dead);
  losses.restart();
  EXPECT_EQ(state_between(losses.counts(), losses.counts()), NumericalState::unknown);
}

TEST(Losses, live_again_in_a_window_where_all_are_finite) {
  Losses losses;
  losses.see(kNan, "nan");
  const LossCounts begin = losses.counts();
  losses.see(0.5, "0.5");
  EXPECT_EQ(state_between(begin, losses.counts()), NumericalState::live);
}

}  // namespace
}  // namespace halfwatt
