#include "engine/tensor/panels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace halfwatt {
namespace {

Tensor counted(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::of<float>(DType::f32, shape, values);
}

std::vector<float> numbers(const Tensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

TEST(Panels, hold_a_step_of_some_rows_then_the_next_step_then_the_next_rows) {
  const Tensor matrix = counted({4, 4});
  Tensor panels(matrix.type());
  to_panels(matrix.view(), 2, 1, panels.view());
  EXPECT_EQ(numbers(panels), (std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7,  //
                                                 8, 12, 9, 13, 10, 14, 11, 15}));
  to_panels(matrix.view(), 2, 2, panels.view());
  EXPECT_EQ(numbers(panels), (std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7,  //
                                                 8, 9, 12, 13, 10, 11, 14, 15}));
}

TEST(Panels, give_back_the_matrix_that_went_in) {
  const Tensor matrix = counted({96, 10});
  Tensor panels(matrix.type());
  Tensor back(matrix.type());
  to_panels(matrix.view(), 32, 2, panels.view());
  from_panels(panels.view(), 32, 2, back.view());
  EXPECT_EQ(numbers(back), numbers(matrix));
}

}  // namespace
}  // namespace halfwatt
