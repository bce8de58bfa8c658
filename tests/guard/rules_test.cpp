#include <gtest/gtest.h>

#include <cmath>

#include "guard/limit_bounds.h"
#include "guard/restore_rule.h"
#include "guard/wire.h"

namespace halfwatt {
namespace {

const LoadId kLoad{"boot-1", "4711"};
const JournalEntry kEntry{"GPU-1", kLoad, Watts(350), {}, Watts(200), Watts(300), {}};

TEST(RestoreRule, puts_back_what_was_written_last_or_the_time_before) {
  EXPECT_EQ(restore_action(kEntry, kLoad, Watts(200)), RestoreAction::put_back);
  EXPECT_EQ(restore_action(kEntry, kLoad, Watts(300)), RestoreAction::put_back);
  EXPECT_EQ(restore_action(kEntry, kLoad, Watts(200.4)), RestoreAction::put_back);
}

TEST(RestoreRule, is_done_where_the_found_limit_is_in_force) {
  EXPECT_EQ(restore_action(kEntry, kLoad, Watts(350)), RestoreAction::done);
  EXPECT_EQ(restore_action(kEntry, {"boot-2", {}}, Watts(350)), RestoreAction::done);
}

TEST(RestoreRule, leaves_every_other_limit_alone) {
  for (const double watts : {199.0, 201.0, 250.0, 349.0, 400.0}) {
    EXPECT_EQ(restore_action(kEntry, kLoad, Watts(watts)), RestoreAction::foreign) << watts;
  }
  const JournalEntry fresh{"GPU-1", kLoad, Watts(350), {}, {}, {}, {}};
  EXPECT_EQ(restore_action(fresh, kLoad, Watts(200)), RestoreAction::foreign);
}

TEST(RestoreRule, takes_a_rounded_limit_for_ours_until_it_was_read_back) {
  JournalEntry unread = kEntry;
  unread.read_back = false;
  for (const double watts : {176.0, 199.0, 201.0, 224.0}) {
    EXPECT_EQ(restore_action(unread, kLoad, Watts(watts)), RestoreAction::put_back) << watts;
  }
  for (const double watts : {174.0, 226.0}) {
    EXPECT_EQ(restore_action(unread, kLoad, Watts(watts)), RestoreAction::foreign) << watts;
  }
}

TEST(RestoreRule, knows_that_a_restart_or_a_new_driver_dropped_the_limit) {
  EXPECT_EQ(restore_action(kEntry, {"boot-2", "4711"}, Watts(200)), RestoreAction::forgotten);
  EXPECT_EQ(restore_action(kEntry, {"boot-1", "4712"}, Watts(200)), RestoreAction::forgotten);
  EXPECT_EQ(restore_action(kEntry, {"boot-1", {}}, Watts(200)), RestoreAction::forgotten);
}

LimitState state(double requested) {
  return {Watts(requested), Watts(requested), LimitRange{Watts(100), Watts(400), Watts(350)},
          true, false};
}

TEST(LimitBounds, end_at_the_limit_that_was_found) {
  EXPECT_EQ(limit_bounds(state(300), {}, "x").value(),
            (LimitBounds{Watts(100), Watts(300), false}));
}

TEST(LimitBounds, end_at_the_enforced_limit_where_that_is_less) {
  LimitState capped = state(300);
  capped.enforced = Watts(240);
  EXPECT_EQ(limit_bounds(capped, {}, "x")->top, Watts(240));
  capped.enforced.reset();
  EXPECT_EQ(limit_bounds(capped, {}, "x")->top, Watts(300));
}

TEST(LimitBounds, go_above_only_where_max_limit_names_it) {
  const auto raised = limit_bounds(state(300), Watts(400), "x");
  EXPECT_EQ(*raised, (LimitBounds{Watts(100), Watts(400), true}));
  EXPECT_EQ(raising_sentence(state(300), *raised, "x"),
            "x: --max-limit lets the limit rise to 400 W, above the 300 W found");
  EXPECT_EQ(*limit_bounds(state(300), Watts(250), "x"),
            (LimitBounds{Watts(100), Watts(250), false}));
}

TEST(LimitBounds, refuse_a_max_limit_that_the_card_does_not_take) {
  for (const double watts : {99.0, 401.0, std::nan("")}) {
    const auto bounds = limit_bounds(state(300), Watts(watts), "x");
    ASSERT_FALSE(bounds);
    EXPECT_NE(bounds.error().message.find("takes 100-400 W"), std::string::npos);
  }
}

TEST(LimitBounds, refuse_mig_a_guess_and_a_card_capped_below_its_range) {
  LimitState sliced = state(300);
  sliced.sliced = true;
  EXPECT_NE(limit_bounds(sliced, {}, "x").error().message.find("MIG"), std::string::npos);
  LimitState silent = state(300);
  silent.range.reset();
  EXPECT_NE(limit_bounds(silent, {}, "x").error().message.find("guessed"), std::string::npos);
  LimitState capped = state(300);
  capped.enforced = Watts(80);
  EXPECT_NE(limit_bounds(capped, {}, "x").error().message.find("80 W"), std::string::npos);
}

TEST(Wire, carries_the_state_of_a_limit_whole) {
  LimitState full = state(333.125);
  full.enforced = Watts(240);
  EXPECT_EQ(state_in(word(full)), full);
  const LimitState sparse{Watts(1), {}, {}, {}, true};
  EXPECT_EQ(state_in(word(sparse)), sparse);
  LimitState no_preset = state(300);
  no_preset.range->preset.reset();
  EXPECT_EQ(state_in(word(no_preset)), no_preset);
}

TEST(Wire, carries_an_error_with_its_kind) {
  for (const ErrorKind kind : {ErrorKind::bad_input, ErrorKind::device, ErrorKind::workload,
                               ErrorKind::interrupted, ErrorKind::not_restored}) {
    const auto error = error_in(answer(Error{kind, "why"}));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind, kind);
    EXPECT_EQ(error->message, "why");
  }
  EXPECT_FALSE(error_in({"ok"}));
  EXPECT_TRUE(error_in({}));
}

TEST(Wire, takes_no_nonsense_for_a_limit) {
  for (const std::string word : {"", "-", "-1", "1e3", "99999999999", "12 "}) {
    EXPECT_FALSE(watts_in(word)) << word;
  }
  EXPECT_FALSE(state_in("1 2 3"));
}

}  // namespace
}  // namespace halfwatt
