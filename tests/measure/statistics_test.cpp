#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace halfwatt {
namespace {

using Values = std::vector<double>;

/// 1, 2, ..., n: an interval's ends are then its ranks.
Values ranks(std::size_t n) {
  Values values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

/// The largest k with P(Binomial(n, 1/2) < k) <= 2.5 %, in whole numbers: n of at most 50.
std::uint64_t exact_rank(std::uint64_t n) {
  constexpr std::uint64_t kTailsIn = 40;  // 2.5 %
  std::uint64_t choose = 1;               // n over k
  std::uint64_t below = 0;
  std::uint64_t rank = 0;
  for (std::uint64_t k = 0; k < n; ++k) {
    below += choose;
    if (below * kTailsIn > std::uint64_t{1} << n) {
      break;
    }
    rank = k + 1;
    choose = choose * (n - k) / (k + 1);
  }
  return rank;
}

/// P(Binomial(n, 1/2) < k) by logarithms, for any n.
double below_rank(std::size_t n, std::size_t k) {
  const double count = static_cast<double>(n);
  double sum = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const double x = static_cast<double>(i);
    sum += std::exp(std::lgamma(count + 1) - std::lgamma(x + 1) - std::lgamma(count - x + 1) -
                    count * std::log(2.0));
  }
  return sum;
}

TEST(Median, is_the_middle_value_or_halfway_between_two) {
  EXPECT_EQ(median(Values{7}), 7);
  EXPECT_EQ(median(Values{3, 1, 2}), 2);
  EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(Values{5, 5, 5, 5}), 5);
}

TEST(Median, of_huge_values_is_finite) { EXPECT_EQ(median(Values{1e308, 1.6e308}), 1.3e308); }

TEST(Quantile, lies_between_the_two_nearest_values) {
  EXPECT_EQ(quantile(Values{3}, 0.95), 3);
  EXPECT_EQ(quantile(Values{30, 10, 20}, 0), 10);
  EXPECT_EQ(quantile(Values{30, 10, 20}, 0.75), 25);
  EXPECT_EQ(quantile(Values{30, 10, 20}, 1), 30);
}

TEST(MedianInterval, takes_the_ranks_that_the_binomial_gives) {
  for (std::size_t n = 6; n <= 50; ++n) {
    const MedianInterval interval = median_interval(ranks(n));
    const double rank = static_cast<double>(exact_rank(n));
    EXPECT_EQ(interval.low, rank) << n;
    EXPECT_EQ(interval.high, static_cast<double>(n) + 1 - rank) << n;
    EXPECT_EQ(interval.median, (static_cast<double>(n) + 1) / 2) << n;
  }
}

TEST(MedianInterval, is_absent_where_so_few_values_prove_none) {
  for (std::size_t n = 1; n <= 5; ++n) {
    const MedianInterval interval = median_interval(ranks(n));
    EXPECT_EQ(interval.low, std::nullopt) << n;
    EXPECT_EQ(interval.high, std::nullopt) << n;
    EXPECT_EQ(interval.median, (static_cast<double>(n) + 1) / 2) << n;
  }
}

TEST(MedianInterval, keeps_its_coverage_for_any_number_of_values) {
  for (const std::size_t n :
       {51U, 100U, 333U, 999U, 1000U, 1001U, 1002U, 1500U, 5000U, 20000U}) {
    const auto rank = static_cast<std::size_t>(*median_interval(ranks(n)).low);
    EXPECT_LE(below_rank(n, rank), 0.025) << n;
    // No wider than needed, but for one rank where the normal approximation takes over.
    EXPECT_GT(below_rank(n, rank + (n > 1000 ? 2 : 1)), 0.025) << n;
  }
}

TEST(MedianInterval, holds_the_true_median_as_often_as_it_claims) {
  constexpr int kTrials = 20'000;
  constexpr std::size_t kValues = 20;
  const double claimed = 1 - 2 * below_rank(kValues, exact_rank(kValues));  // 95.9 %
  const double deviation = std::sqrt(claimed * (1 - claimed) / kTrials);
  Rng rng(1);
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Values values(kValues);
    std::ranges::generate(values, [&rng] { return std::exp(rng.normal()); });  // median 1
    const MedianInterval interval = median_interval(values);
    held += *interval.low <= 1 && 1 <= *interval.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(held) / kTrials, claimed, 4 * deviation);
}

TEST(MedianInterval, is_the_same_in_whatever_order_the_values_come) {
  Rng rng(2);
  Values values(31);
  std::ranges::generate(values, [&rng] { return rng.normal(); });
  const MedianInterval one = median_interval(values);
  std::ranges::reverse(values);
  const MedianInterval other = median_interval(values);
  EXPECT_EQ(one.median, other.median);
  EXPECT_EQ(one.low, other.low);
  EXPECT_EQ(one.high, other.high);
}

TEST(RobustDeviation, estimates_the_standard_deviation_of_a_normal) {
  Rng rng(3);
  Values values(20'000);
  std::ranges::generate(values, [&rng] { return 5 + 2 * rng.normal(); });
  EXPECT_NEAR(robust_deviation(values, 5), 2, 0.05);
}

TEST(RobustDeviation, is_not_moved_by_one_outlier) {
  Values values{9.8, 9.9, 10, 10.1, 10.2};
  const double quiet = robust_deviation(values, 10);
  values.back() = 1000;
  EXPECT_DOUBLE_EQ(robust_deviation(values, 10), quiet);
}

TEST(RobustDeviation, of_nothing_is_zero) { EXPECT_EQ(robust_deviation(Values{}, 1), 0); }

}  // namespace
}  // namespace halfwatt
