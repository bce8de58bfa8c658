#include "engine/tensor/narrow.h"

#include <gtest/gtest.h>

#include <cmath>

namespace halfwatt {
namespace {

Narrowing narrowed(std::vector<float> values, DType to, Overflow overflow, Tensor* result) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor from = Tensor::of<float>(DType::f32, Shape{count}, values);
  *result = Tensor(TensorType{to, Shape{count}});
  return narrow(from.view(), result->view(), overflow);
}

std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.shape()});
  convert(tensor.view(), wide.view());
  return {wide.as<double>().begin(), wide.as<double>().end()};
}

TEST(Narrow, counts_what_f16_cannot_hold) {
  Tensor result;
  // 65519 rounds to the largest number, 65520 to infinity; 2^-25 is a tie and becomes 0.
  const Narrowing lost =
      narrowed({1, 65519, 65520, -1e6F, 0x1p-24F, -0x1p-25F, 0x1p-14F, 0, INFINITY, NAN},
               DType::f16, Overflow::as_format, &result);
  EXPECT_EQ(lost.elements, 10);
  EXPECT_EQ(lost.overflowed, 2);
  EXPECT_EQ(lost.underflowed, 1);
  EXPECT_EQ(lost.subnormal, 1);
  EXPECT_EQ(lost.not_finite, 2);
  EXPECT_EQ(lost.largest, 1e6);
  EXPECT_EQ(doubles(result)[1], 65504);
  EXPECT_EQ(doubles(result)[3], -INFINITY);
}

TEST(Narrow, counts_the_same_of_numbers_that_saturate) {
  Tensor result;
  const Narrowing lost = narrowed({65520, -1e6F, 3}, DType::f16, Overflow::saturate, &result);
  EXPECT_EQ(lost.overflowed, 2);
  EXPECT_EQ(doubles(result), (std::vector<double>{65504, -65504, 3}));
}

TEST(Narrow, loses_nothing_on_the_way_to_a_wider_format) {
  std::vector<float> values;
  for (int at = 0; at < 10000; ++at) {
    values.push_back(std::ldexp(1.0F + static_cast<float>(at) / 10000, at % 200 - 120));
  }
  Tensor result;
  const Narrowing lost = narrowed(values, DType::f64, Overflow::as_format, &result);
  EXPECT_EQ(lost.elements, 10000);
  EXPECT_EQ(lost.overflowed + lost.underflowed + lost.subnormal + lost.not_finite, 0);
}

}  // namespace
}  // namespace halfwatt
