#include "engine/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace halfwatt {
namespace {

TEST(Tensor, owns_elements_that_a_view_shows) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto tensor = Tensor::of<float>(DType::f32, Shape{2, 3}, values);
  EXPECT_EQ(tensor.view().as<float>()[4], 5);
  EXPECT_EQ(tensor.view().type.bytes(), 24U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.view().data) % kAlignment, 0U);
  const Tensor copy = tensor.copy();
  EXPECT_EQ(copy.as<float>()[5], 6);
  EXPECT_EQ(text(copy.type()), "f32 2x3");
}

TEST(Tensor, of_no_elements_is_no_trouble) {
  const Tensor none(TensorType{DType::f16, Shape{0, 4}});
  EXPECT_EQ(none.as<std::uint16_t>().size(), 0U);
}

TEST(TensorDeathTest, is_not_looked_at_as_another_type) {
  const Tensor half(TensorType{DType::f16, Shape{4}});
  EXPECT_DEATH((void)half.as<float>(), "another type");
}

}  // namespace
}  // namespace halfwatt
