#include <gtest/gtest.h>

#include <array>

#include "guard/death.h"

namespace halfwatt {
namespace {

void expect_restored(const Death& death) {
  const Aftermath after = die(death);
  EXPECT_TRUE(after.died) << describe(death);
  EXPECT_TRUE(after.restored) << describe(death) << ":" << after.what;
  EXPECT_LT(after.seconds, 2) << describe(death);
}

Death guardian_death(Victim victim, GuardianState at) {
  Death death;
  death.victim = victim;
  death.guardian_at = at;
  return death;
}

// test_guard_deaths does the same a thousand times.
TEST(Deaths, of_the_parent_leave_no_limit_changed_in_any_state) {
  for (const GuardianState state : kGuardianStates) {
    expect_restored(guardian_death(Victim::parent, state));
  }
}

TEST(Deaths, of_the_guardian_leave_no_limit_changed_in_any_state) {
  for (const GuardianState state : kGuardianStates) {
    expect_restored(guardian_death(Victim::guardian, state));
  }
}

TEST(Deaths, of_every_cause_leave_no_limit_changed) {
  for (const Cause cause :
       {Cause::kill, Cause::segv, Cause::term, Cause::exception, Cause::child_crash}) {
    Death death;
    death.victim = Victim::parent;
    death.cause = cause;
    death.parent_at = ParentState::window;
    expect_restored(death);
  }
  for (const Cause cause : {Cause::segv, Cause::term, Cause::exception}) {
    Death death = guardian_death(Victim::guardian, GuardianState::waiting);
    death.cause = cause;
    death.occurrence = 3;
    expect_restored(death);
  }
}

TEST(Deaths, of_eight_cards_holder_leave_none_of_them_changed) {
  for (const Victim victim : {Victim::parent, Victim::guardian}) {
    Death death = guardian_death(victim, GuardianState::written);
    death.cards = 8;
    death.occurrence = 20;  // in the second round of sets
    expect_restored(death);
  }
}

TEST(Deaths, of_both_are_mended_by_the_next_start_in_any_state) {
  for (const GuardianState state : kGuardianStates) {
    Death death = guardian_death(Victim::both, state);
    const bool often = state >= GuardianState::waiting && state <= GuardianState::read_back;
    death.occurrence = often ? 2 : 1;
    expect_restored(death);
  }
}

TEST(Deaths, of_a_pid_namespace_are_mended_by_the_next_start) {
  Death death = guardian_death(Victim::both, GuardianState::read_back);
  death.together = DoubleDeath::pid_namespace;
  death.occurrence = 2;
  if (const auto why = cannot_die(death.together)) {
    GTEST_SKIP() << *why;
  }
  expect_restored(death);
}

TEST(Deaths, of_a_cgroup_are_mended_by_the_next_start) {
  Death death = guardian_death(Victim::both, GuardianState::read_back);
  death.together = DoubleDeath::cgroup;
  death.occurrence = 2;
  if (const auto why = cannot_die(death.together)) {
    GTEST_SKIP() << *why;
  }
  expect_restored(death);
}

TEST(Deaths, never_overwrite_what_a_stranger_set) {
  for (const Victim victim : {Victim::parent, Victim::guardian, Victim::both}) {
    Death death = guardian_death(victim, GuardianState::waiting);
    death.occurrence = 3;
    death.cards = 2;
    death.stranger = true;
    expect_restored(death);
  }
}

}  // namespace
}  // namespace halfwatt
