#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace halfwatt {
namespace {

// The first outputs of the reference implementation (prng.di.unimi.it/splitmix64.c), seed 0.
TEST(Rng, gives_the_published_sequence) {
  Rng rng(0);
  EXPECT_EQ(rng.next(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(rng.next(), 0x6e789e6aa1b965f4ULL);
  EXPECT_EQ(rng.next(), 0x06c45d188009454fULL);
}

constexpr int kDraws = 100'000;

TEST(Rng, is_uniform_between_its_bounds) {
  Rng rng(1);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.uniform(2, 4);
    ASSERT_GE(value, 2);
    ASSERT_LT(value, 4);
    sum += value;
  }
  // Five standard errors of the mean: 5 * (2 / sqrt(12)) / sqrt(kDraws).
  EXPECT_NEAR(sum / kDraws, 3, 0.01);
}

TEST(Rng, is_normal_in_mean_deviation_and_tail) {
  Rng rng(2);
  double sum = 0;
  double sum_of_squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.normal();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    sum_of_squares += value * value;
    beyond_two += std::abs(value) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.016);             // five standard errors
  EXPECT_NEAR(sum_of_squares / kDraws, 1, 0.023);  // five standard errors
  EXPECT_NEAR(beyond_two / double{kDraws}, 0.0455, 0.0033);
}

}  // namespace
}  // namespace halfwatt
