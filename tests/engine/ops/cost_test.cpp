#include <gtest/gtest.h>

#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

class CostOf : public testing::Test {
 protected:
  Cost of(Value value) const { return cost(graph, value.node); }
  Value input(Shape shape, DType dtype = DType::f32) {
    return build.input(std::to_string(graph.size()), {dtype, shape});
  }

  Graph graph;
  Builder build{graph};
};

TEST_F(CostOf, a_product_is_two_flops_for_each_multiply_add_whatever_is_transposed) {
  const Value x = input(Shape{2, 5, 3});
  EXPECT_EQ(of(build.add(Op::matmul, {x, input(Shape{3, 4})})).flops, 2.0 * 10 * 3 * 4);
  EXPECT_EQ(of(build.linear(x, input(Shape{4, 3}), input(Shape{4}))).flops, 2.0 * 10 * 3 * 4);
  const Value t = build.add(Op::matmul, {x, input(Shape{10, 4})}, {{"transpose_a", true}});
  EXPECT_EQ(of(t).flops, 2.0 * 10 * 3 * 4);
}

TEST_F(CostOf, a_convolution_and_each_gradient_of_it_is_a_product_of_patches_and_weights) {
  const Value images = input(Shape{2, 3, 9, 8});
  const Value weights = input(Shape{5, 3, 4, 2});
  const Attributes strided{{"stride", std::int64_t{2}}, {"padding", std::int64_t{1}}};
  const Value y = build.add(Op::convolution, {images, weights, input(Shape{5})}, strided);
  const double product = 2.0 * (2 * 4 * 5) * 5 * (3 * 4 * 2);
  EXPECT_EQ(of(y).flops, product);
  Attributes gradient = strided;
  gradient.set("shape", Shape{2, 3, 9, 8});
  EXPECT_EQ(of(build.add(Op::convolution_input_gradient, {y, weights}, gradient)).flops,
            product);
  gradient.set("shape", Shape{5, 3, 4, 2});
  EXPECT_EQ(of(build.add(Op::convolution_weight_gradient, {y, images}, gradient)).flops,
            product);
}

TEST_F(CostOf, attention_is_two_products_and_its_gradient_five) {
  const Value qkv = input(Shape{2, 7, 24});
  const Attributes heads{{"heads", std::int64_t{4}}};
  const Value y = build.add(Op::attention, {qkv}, heads);
  const double product = 2.0 * 2 * 7 * 7 * 8;
  EXPECT_EQ(of(y).flops, 2 * product);
  const Value gradient =
      build.add(Op::attention_gradient, {y, qkv, y, Builder::output(y, 1)}, heads);
  EXPECT_EQ(of(gradient).flops, 5 * product);
}

TEST_F(CostOf, everything_counts_each_input_and_output_once) {
  const Value x = input(Shape{4, 6}, DType::f16);
  EXPECT_EQ(of(build.cast(x, DType::f32)).bytes, 24.0 * 2 + 24 * 4);
  const Value y =
      build.add(Op::layer_norm, {x, input(Shape{6}), input(Shape{6})}, {{"eps", 1e-6}});
  EXPECT_EQ(of(y).bytes, 2 * 24.0 * 2 + 2 * 6 * 4 + 2 * 4 * 4);
  EXPECT_EQ(of(y).flops, 0);
}

TEST_F(CostOf, what_only_names_memory_is_nothing) {
  const Value x = input(Shape{4, 6});
  EXPECT_EQ(of(x).bytes, 0);
  EXPECT_EQ(of(build.constant(1, {DType::f32, Shape{9}})).bytes, 0);
}

}  // namespace
}  // namespace halfwatt
