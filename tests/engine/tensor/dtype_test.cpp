#include "engine/tensor/dtype.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(DType, finds_every_dtype_by_its_name) {
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(text(dtype)), dtype);
  }
  EXPECT_EQ(dtype_named("float"), std::nullopt);
}

TEST(DType, promotes_to_what_holds_both) {
  EXPECT_EQ(promoted(DType::f16, DType::f32), DType::f32);
  EXPECT_EQ(promoted(DType::bf16, DType::bf16), DType::bf16);
  EXPECT_EQ(promoted(DType::f64, DType::bf16), DType::f64);
  EXPECT_EQ(promoted(DType::f16, DType::bf16), DType::f32);
  EXPECT_EQ(promoted(DType::tf32, DType::f16), DType::tf32);
  EXPECT_EQ(promoted(DType::i64, DType::f32), std::nullopt);
}

TEST(DType, tells_the_error_of_rounding) {
  EXPECT_EQ(half_ulp(DType::f16), 0x1p-11);
  EXPECT_EQ(half_ulp(DType::bf16), 0x1p-8);
  EXPECT_EQ(half_ulp(DType::e4m3), 0x1p-4);
  EXPECT_EQ(half_ulp(DType::e5m2), 0x1p-3);
}

}  // namespace
}  // namespace halfwatt
