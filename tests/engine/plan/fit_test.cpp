#include "engine/plan/fit.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

// Bytes of a made-up plan: accumulators, and so much for each sample.
Excess plan(double memory, double accumulators, double sample, double sample_again) {
  return [=](const StepCut& fit) -> Result<double> {
    return (fit.micro_batches > 1 ? accumulators : 0) +
           static_cast<double>(fit.batch) * (fit.recompute ? sample_again : sample) - memory;
  };
}

std::optional<StepCut> largest(std::optional<std::int64_t> effective, const Excess& excess) {
  auto fit = largest_that_fits(effective, excess);
  EXPECT_TRUE(fit);
  return *fit;
}

TEST(Fit, takes_the_largest_divisor_of_the_effective_batch) {
  const auto fit = largest(1024, plan(100, 10, 1, 0.1));
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->batch, 64);
  EXPECT_EQ(fit->micro_batches, 16);
  EXPECT_FALSE(fit->recompute);
  EXPECT_EQ(largest(90, plan(50, 4, 1, 0.1))->batch, 45);
}

TEST(Fit, does_not_accumulate_where_the_whole_batch_fits) {
  const auto fit = largest(64, plan(64, 1000, 1, 0.1));
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->batch, 64);
  EXPECT_EQ(fit->micro_batches, 1);
}

TEST(Fit, recomputes_only_where_nothing_fits_without) {
  const auto fit = largest(64, plan(10, 2, 20, 1));
  ASSERT_TRUE(fit);
  EXPECT_TRUE(fit->recompute);
  EXPECT_EQ(fit->batch, 8);
}

TEST(Fit, tries_every_number_without_an_effective_batch) {
  EXPECT_EQ(largest(std::nullopt, plan(777, 10, 1, 0.1))->batch, 777);
}

TEST(Fit, says_so_where_nothing_fits) {
  EXPECT_FALSE(largest(64, plan(1, 2, 20, 10)));
  EXPECT_FALSE(largest(1, plan(1, 2, 20, 10)));
}

TEST(Fit, makes_few_plans) {
  int plans = 0;
  const Excess excess = [&](const StepCut& fit) -> Result<double> {
    ++plans;
    return static_cast<double>(fit.batch) - 1000;
  };
  EXPECT_EQ(largest(std::nullopt, excess)->batch, 1000);
  EXPECT_LE(plans, 18);
}

TEST(Fit, hands_on_what_goes_wrong_with_a_plan) {
  const auto fit = largest_that_fits(
      8, [](const StepCut&) -> Result<double> { return bad_input("no kernel"); });
  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.error().message, "no kernel");
}

}  // namespace
}  // namespace halfwatt
