#include "engine/tensor/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace halfwatt {
namespace {

template <class T>
std::optional<ValueSummary> of(DType dtype, const std::vector<T>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return summary(Tensor::of<T>(dtype, shape, values).view());
}

TEST(Summary, tells_extremes_mean_and_rms) {
  const auto all = of<float>(DType::f32, {1, -3, 2, 4});
  ASSERT_TRUE(all && all->finite);
  EXPECT_EQ(all->not_finite, 0);
  EXPECT_EQ(all->finite->min, -3);
  EXPECT_EQ(all->finite->max, 4);
  EXPECT_EQ(all->finite->mean, 1);
  EXPECT_EQ(all->finite->rms, std::sqrt(30 / 4.0));
}

TEST(Summary, counts_what_is_not_finite_and_leaves_it_out) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto some = of<double>(DType::f64, {std::nan(""), inf, -inf, 2});
  ASSERT_TRUE(some && some->finite);
  EXPECT_EQ(some->not_finite, 3);
  EXPECT_EQ(some->finite->mean, 2);
  const auto none = of<double>(DType::f64, {std::nan(""), inf});
  EXPECT_EQ(none->not_finite, 2);
  EXPECT_FALSE(none->finite);
  EXPECT_FALSE(of<float>(DType::f32, {})->finite);
}

TEST(Summary, is_right_at_both_ends_of_the_range) {
  for (const double value : {std::numeric_limits<double>::max(),
                             std::numeric_limits<double>::denorm_min(), 0.0, 1e-300}) {
    const auto all = of<double>(DType::f64, {value, value, value, value});
    EXPECT_EQ(all->finite->mean, value);
    EXPECT_EQ(all->finite->rms, value);
  }
}

TEST(Summary, reads_integers_and_truth_by_their_dtype) {
  EXPECT_EQ(of<std::int8_t>(DType::i8, {-128, 127})->finite->min, -128);
  EXPECT_EQ(of<std::uint8_t>(DType::u8, {128, 255})->finite->max, 255);
  EXPECT_EQ(of<std::uint64_t>(DType::u64, {~std::uint64_t{0}})->finite->max, 0x1p64);
  EXPECT_EQ(of<std::uint8_t>(DType::boolean, {1, 0, 0, 1})->finite->mean, 0.5);
}

TEST(Summary, of_16_bit_floats_and_fp8_is_not_known) {
  EXPECT_FALSE(of<std::uint16_t>(DType::f16, {0x3c00}));
  EXPECT_FALSE(of<std::uint16_t>(DType::bf16, {0x3f80}));
  EXPECT_FALSE(of<std::uint8_t>(DType::e4m3, {0x38}));
  EXPECT_FALSE(of<std::uint8_t>(DType::e5m2, {0x3c}));
}

}  // namespace
}  // namespace halfwatt
