#include <gtest/gtest.h>

#include <vector>

#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

TEST(RowsAs, gives_rows_from_anywhere_and_the_last_one_again_behind_the_end) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto all = Tensor::of<float>(DType::f32, Shape{3, 2}, values);
  const Tensor rows = rows_as(all.view(), 1, {DType::f64, Shape{4, 2, 1}});
  const auto numbers = rows.as<double>();
  EXPECT_EQ(std::vector<double>(numbers.begin(), numbers.end()),
            (std::vector<double>{3, 4, 5, 6, 5, 6, 5, 6}));
}

TEST(RowsAs, turns_whole_numbers_into_floats) {
  const std::vector<std::int64_t> labels = {0, 1, 1};
  const auto all = Tensor::of<std::int64_t>(DType::i64, Shape{3}, labels);
  const Tensor rows = rows_as(all.view(), 0, {DType::f32, Shape{2, 1}});
  EXPECT_EQ(rows.as<float>()[0], 0);
  EXPECT_EQ(rows.as<float>()[1], 1);
}

}  // namespace
}  // namespace halfwatt
