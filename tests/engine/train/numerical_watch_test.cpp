#include "engine/train/numerical_watch.h"

#include <gtest/gtest.h>

#include <cmath>

namespace halfwatt {
namespace {

StepNumbers good() {
  StepNumbers step;
  step.loss = 1;
  step.parameters = 1000;
  step.unchanged = 10;
  return step;
}

TEST(NumericalWatch, calls_a_run_live_while_its_parameters_move) {
  NumericalWatch watch;
  EXPECT_EQ(watch.see(good()), NumericalState::live);
  EXPECT_TRUE(watch.reason().empty());
}

TEST(NumericalWatch, calls_a_run_dead_for_good_once_a_parameter_is_not_finite) {
  NumericalWatch watch;
  StepNumbers bad = good();
  bad.not_finite = 3;
  bad.first_bad = "head.weight";
  EXPECT_EQ(watch.see(bad), NumericalState::dead);
  EXPECT_EQ(watch.see(good()), NumericalState::dead);
  EXPECT_NE(watch.reason().find("head.weight"), std::string::npos);
}

TEST(NumericalWatch, forgives_an_infinite_loss_of_a_step_that_was_skipped) {
  NumericalWatch watch;
  StepNumbers step = good();
  step.loss = INFINITY;
  step.skipped = step.overflowed = true;
  step.scale = 65536;
  step.least_scale = 1;
  EXPECT_EQ(watch.see(step), NumericalState::live);
  step.skipped = false;
  EXPECT_EQ(watch.see(step), NumericalState::dead);
}

TEST(NumericalWatch, ends_a_run_that_overflows_at_the_floor_of_the_scale) {
  NumericalWatch watch;
  StepNumbers step = good();
  step.skipped = step.overflowed = true;
  step.scale = step.least_scale = 1;
  step.first_bad = "blocks.0.attn.qkv.weight";
  EXPECT_EQ(watch.see(step), NumericalState::dead);
  EXPECT_NE(watch.reason().find("blocks.0.attn.qkv.weight"), std::string::npos);
}

TEST(NumericalWatch, sees_that_most_steps_are_skipped) {
  NumericalWatch watch;
  StepNumbers step = good();
  step.skipped = true;
  step.scale = 65536;
  step.least_scale = 1;
  NumericalState state = NumericalState::unknown;
  for (int at = 0; at < 26; ++at) {
    state = watch.see(step);
  }
  EXPECT_EQ(state, NumericalState::skipping);
}

TEST(NumericalWatch, sees_that_parameters_stand_still) {
  NumericalWatch watch;
  StepNumbers step = good();
  step.unchanged = 991;
  EXPECT_EQ(watch.see(step), NumericalState::stalled);
  step.unchanged = 990;
  EXPECT_EQ(watch.see(step), NumericalState::live);
  step.unchanged = 1000;
  step.rate_share = 1e-4;  // the end of a cosine
  EXPECT_EQ(watch.see(step), NumericalState::live);
}

}  // namespace
}  // namespace halfwatt
