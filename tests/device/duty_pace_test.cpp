#include "device/duty_pace.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

constexpr Seconds kTurn{0.4};

/// Turns of a group that gets `rate` processors undisturbed and `favour` times as much in the
/// time that the pace allows; the share of undisturbed work that it had after all of them.
double share_after_turns(DutyPace& pace, double share, double rate, double favour) {
  Seconds worth;
  Seconds elapsed;
  for (int i = 0; i < 200; ++i) {
    const Seconds on = pace.time_on(kTurn, share);
    const Seconds run = on * rate * favour;
    pace.saw_steady(on * 0.5, on * 0.5 * rate);
    pace.close_turn(kTurn, share, pace.worth(on, run));
    worth += run / rate;
    elapsed += kTurn;
  }
  return worth / elapsed;
}

TEST(DutyPace, allows_the_share_of_time_where_nobody_else_computes) {
  DutyPace pace;
  EXPECT_EQ(pace.time_on(kTurn, 0.6), kTurn * 0.6);
  EXPECT_NEAR(share_after_turns(pace, 0.6, 1, 1), 0.6, 0.01);
}

TEST(DutyPace, allows_less_time_where_the_scheduler_favours_a_group_that_slept) {
  for (const double favour : {0.8, 1.1, 1.4}) {
    DutyPace pace;
    EXPECT_NEAR(share_after_turns(pace, 0.5, 0.7, favour), 0.5, 0.01) << favour;
    EXPECT_NEAR(pace.time_on(kTurn, 0.5) / kTurn, 0.5 / favour, 0.01) << favour;
  }
}

TEST(DutyPace, follows_a_group_that_gets_less_of_the_processors_than_before) {
  DutyPace pace;
  share_after_turns(pace, 0.5, 2, 1);
  EXPECT_NEAR(share_after_turns(pace, 0.5, 0.8, 1), 0.5, 0.02);
}

TEST(DutyPace, counts_by_time_what_hardly_computes) {
  DutyPace pace;
  pace.saw_steady(Seconds(1), Seconds(0.001));
  EXPECT_EQ(pace.worth(Seconds(0.2), Seconds(0.01)), Seconds(0.2));
}

TEST(DutyPace, takes_a_signal_that_took_effect_late_off_the_next_turns) {
  DutyPace pace;
  pace.saw_steady(Seconds(1), Seconds(1));
  pace.close_turn(kTurn, 0.5, Seconds(0.3));
  EXPECT_NEAR(pace.time_on(kTurn, 0.5).value(), 0.1, 1e-12);
}

TEST(DutyPace, never_owes_more_than_about_a_turn) {
  DutyPace pace;
  for (int i = 0; i < 100; ++i) {
    pace.close_turn(kTurn, 0.5, kTurn);
  }
  EXPECT_EQ(pace.time_on(kTurn, 0.5), Seconds(0));
  pace.close_turn(kTurn, 0.5, Seconds(0));
  pace.close_turn(kTurn, 0.5, Seconds(0));
  EXPECT_GT(pace.time_on(kTurn, 0.5), Seconds(0.1));
}

TEST(DutyPace, holds_nothing_against_a_group_that_was_free_meanwhile) {
  DutyPace pace;
  pace.close_turn(kTurn, 0.5, kTurn);
  pace.forgive();
  EXPECT_EQ(pace.time_on(kTurn, 0.5), kTurn * 0.5);
}

}  // namespace
}  // namespace halfwatt
