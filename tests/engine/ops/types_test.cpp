#include <gtest/gtest.h>

#include <algorithm>

#include "engine/ops/made_up_types.h"

namespace halfwatt {
namespace {

struct Fitting {
  Op op;
  Types inputs;
  Attributes attributes;
  Types outputs;
};

// One of every op at least: in the order of the enumeration.
const std::vector<Fitting> kFitting = {
    {Op::input, {}, typed(DType::f16, Shape{2}), {f16(Shape{2})}},
    {Op::constant, {}, typed(DType::f32, Shape{}), {kScalar}},
    {Op::read, {}, typed(DType::f32, Shape{2, 3}), {f32(Shape{2, 3})}},
    {Op::write, {f32(Shape{2})}, {}, {}},
    {Op::matmul, {f32(Shape{2, 5, 3}), f32(Shape{3, 4})}, {}, {f32(Shape{2, 5, 4})}},
    {Op::matmul,
     {f16(Shape{5, 3}), f16(Shape{4, 3}), f16(Shape{4})},
     {{"transpose_b", true}},
     {f16(Shape{5, 4})}},
    {Op::matmul,
     {f32(Shape{2, 5, 3}), f32(Shape{10, 4})},
     {{"transpose_a", true}},
     {f32(Shape{3, 4})}},
    {Op::convolution,
     {f16(Shape{2, 3, 9, 8}), f16(Shape{5, 3, 4, 2}), f16(Shape{5})},
     strided(2, 1),
     {f16(Shape{2, 5, 4, 5})}},
    {Op::convolution_input_gradient,
     {f16(Shape{2, 5, 4, 5}), f16(Shape{5, 3, 4, 2})},
     strided(2, 1, Shape{2, 3, 9, 8}),
     {f16(Shape{2, 3, 9, 8})}},
    {Op::convolution_weight_gradient,
     {f16(Shape{2, 5, 4, 5}), f16(Shape{2, 3, 9, 8})},
     strided(2, 1, Shape{5, 3, 4, 2}),
     {f16(Shape{5, 3, 4, 2})}},
    {Op::convolution_weight_gradient,
     {f16(Shape{2, 5, 4, 5}), f16(Shape{2, 3, 9, 8})},
     with_bias(strided(2, 1, Shape{5, 3, 4, 2})),
     {f16(Shape{5, 3, 4, 2}), f16(Shape{5})}},
    {Op::matmul,
     {f16(Shape{5, 3}), f16(Shape{3, 4}), f16(Shape{4}), kScalar, kScalar},
     observed(scaled(DType::e4m3)),
     {f16(Shape{5, 4}), kScalar, kScalar}},
    {Op::matmul,
     {f16(Shape{5, 3}), f16(Shape{3, 4}), kScalar, kScalar},
     scaled(DType::e5m2),
     {f16(Shape{5, 4})}},
    {Op::matmul,
     {f16(Shape{5, 3}), f16(Shape{3, 4})},
     observed({{"math_a", DType::e4m3}, {"math_b", DType::e4m3}}),
     {f16(Shape{5, 4}), kScalar, kScalar}},
    {Op::attention,
     {f16(Shape{2, 5, 24})},
     heads(4),
     {f16(Shape{2, 5, 8}), f32(Shape{2, 4, 5})}},
    {Op::attention_gradient,
     {f16(Shape{2, 5, 8}), f16(Shape{2, 5, 24}), f16(Shape{2, 5, 8}), f32(Shape{2, 4, 5})},
     heads(4),
     {f16(Shape{2, 5, 24})}},
    {Op::layer_norm,
     {f16(Shape{2, 5, 8}), f32(Shape{8}), f32(Shape{8})},
     {{"eps", 1e-6}},
     {f16(Shape{2, 5, 8}), f32(Shape{10}), f32(Shape{10})}},
    {Op::layer_norm_gradient,
     {f16(Shape{5, 8}), f16(Shape{5, 8}), f32(Shape{8}), f32(Shape{5}), f32(Shape{5})},
     {},
     {f16(Shape{5, 8}), f32(Shape{8}), f32(Shape{8})}},
    {Op::layer_norm_gradient,
     {f16(Shape{5, 8}), f32(Shape{5, 8}), f32(Shape{8}), f32(Shape{5}), f32(Shape{5})},
     {},
     {f32(Shape{5, 8}), f32(Shape{8}), f32(Shape{8})}},
    {Op::cross_entropy,
     {f32(Shape{5, 8}), i64(Shape{5}), kCount},
     {{"smoothing", 0.1}},
     {kScalar, f32(Shape{5})}},
    {Op::cross_entropy_gradient,
     {kScalar, f32(Shape{5, 8}), i64(Shape{5}), kCount},
     {{"smoothing", 0.1}},
     {f32(Shape{5, 8})}},
    {Op::binary_cross_entropy,
     {f32(Shape{5, 1}), f32(Shape{5, 1}), kCount},
     {},
     {kScalar, f32(Shape{5})}},
    {Op::binary_cross_entropy_gradient,
     {kScalar, f32(Shape{5, 1}), f32(Shape{5, 1}), kCount},
     {},
     {f32(Shape{5, 1})}},
    {Op::mean, {f32(Shape{2, 5, 8})}, axis(1), {f32(Shape{2, 8})}},
    {Op::sum_to, {f32(Shape{2, 5, 8})}, shape(Shape{5, 1}), {f32(Shape{5, 1})}},
    {Op::cast, {f32(Shape{2})}, {{"to", DType::bf16}}, {{DType::bf16, Shape{2}}}},
    {Op::normalise, {u8(Shape{5, 2, 4, 8})}, normal({0, 1}, {1, 2}), {f32(Shape{5, 2, 4, 8})}},
    {Op::add, {f16(Shape{2, 1}), f32(Shape{3})}, {}, {f32(Shape{2, 3})}},
    {Op::scale, {f16(Shape{2})}, {{"factor", 2.0}}, {f16(Shape{2})}},
    {Op::scale, {f16(Shape{2}), f32(Shape{1})}, {}, {f16(Shape{2})}},
    {Op::gelu, {f16(Shape{2})}, {}, {f16(Shape{2})}},
    {Op::gelu_gradient, {f16(Shape{2}), f16(Shape{2})}, {}, {f16(Shape{2})}},
    {Op::dropout, {f16(Shape{2}), kKey}, rate(0), {f16(Shape{2})}},
    {Op::drop_path, {f16(Shape{2}), kKey}, rate(0.5), {f16(Shape{2})}},
    {Op::reshape, {i64(Shape{2, 3})}, shape(Shape{6, 1}), {i64(Shape{6, 1})}},
    {Op::expand, {f32(Shape{1, 3})}, shape(Shape{4, 2, 3}), {f32(Shape{4, 2, 3})}},
    {Op::slice, {f32(Shape{2, 7})}, range("count", 1, 2, 5), {f32(Shape{2, 5})}},
    {Op::slice_gradient, {f32(Shape{2, 5})}, range("extent", 1, 2, 7), {f32(Shape{2, 7})}},
    {Op::concatenate, {f16(Shape{2, 5}), f32(Shape{2, 1})}, axis(1), {f32(Shape{2, 6})}},
    {Op::transpose, {f32(Shape{2, 3, 8, 4})}, {}, {f32(Shape{2, 3, 4, 8})}},
    {Op::transfer, {f32(Shape{2})}, {}, {f32(Shape{2})}},
    {Op::check_gradients, {f16(Shape{2}), f32(Shape{5, 8})}, {}, {kFlag, kScalar, kCount}},
    {Op::gradient_factor, {kScalar, kScalar}, {{"max_norm", 1.0}}, {kScalar, kScalar}},
    {Op::learning_rate, {kCount}, {{"dtype", DType::f64}}, {{DType::f64, Shape()}}},
    {Op::adamw,
     {f32(Shape{2}), f16(Shape{2}), f16(Shape{2}), f32(Shape{2}), kScalar, kScalar, kCount,
      kFlag},
     {},
     {f32(Shape{2}), f16(Shape{2}), f16(Shape{2}), kTally}},
    {Op::sgd,
     {f32(Shape{2}), f16(Shape{2}), f32(Shape{2}), kScalar, kScalar, kCount, kFlag},
     {},
     {f32(Shape{2}), f16(Shape{2}), kTally}},
    {Op::adamw,
     {f32(Shape{2}), f16(Shape{2}), f16(Shape{2}), f32(Shape{2}), f32(Shape{3, 5}),
      f16(Shape{3, 5}), f16(Shape{3, 5}), f32(Shape{3, 5}), kScalar, kScalar, kCount, kFlag},
     {},
     {f32(Shape{2}), f16(Shape{2}), f16(Shape{2}), kTally, f32(Shape{3, 5}), f16(Shape{3, 5}),
      f16(Shape{3, 5}), kTally}},
    {Op::sgd,
     {f32(Shape{2}), f16(Shape{2}), f32(Shape{2}), f32(Shape{4}), f16(Shape{4}), f32(Shape{4}),
      kScalar, kScalar, kCount, kFlag},
     {},
     {f32(Shape{2}), f16(Shape{2}), kTally, f32(Shape{4}), f16(Shape{4}), kTally}},
    {Op::ema, {f32(Shape{2}), f16(Shape{2}), kFlag}, {{"decay", 0.9}}, {f32(Shape{2})}},
    {Op::advance, {kCount, kFlag}, {}, {kCount}},
    {Op::update_scale, {kScalar, kAge, kFlag}, {}, {kScalar, kAge}},
    {Op::observe_amax, {f32(Shape{4}), kScalar, kScalar}, {}, {f32(Shape{4})}},
    {Op::rescale, {f32(Shape{4}), kScalar, kFlag}, {}, {f32(Shape{4}), kScalar, kScalar}},
    {Op::add_layer_norm,
     {f16(Shape{5, 8}), f32(Shape{5, 8}), f32(Shape{8}), f32(Shape{8})},
     {{"eps", 1e-6}},
     {f32(Shape{5, 8}), f32(Shape{5, 8}), f32(Shape{5}), f32(Shape{5})}},
    {Op::linear,
     {f16(Shape{2, 5, 4}), f16(Shape{6, 4}), f16(Shape{6})},
     {{"columns", std::int64_t{3}}, {"steps", std::int64_t{2}}, {"gelu", true}},
     {f16(Shape{2, 5, 6})}}};

TEST(Types, of_outputs_follow_from_those_of_inputs_for_every_op) {
  std::vector<bool> seen(kOps);
  for (const Fitting& each : kFitting) {
    seen[static_cast<std::size_t>(each.op)] = true;
    Node node;
    node.op = each.op;
    node.attributes = each.attributes;
    const OpDef& row = definition(each.op);
    EXPECT_GE(each.inputs.size(), row.fewest_inputs) << row.name;
    EXPECT_LE(each.inputs.size(), row.most_inputs) << row.name;
    const auto outputs = row.outputs(node, each.inputs);
    ASSERT_TRUE(outputs) << row.name << ": " << outputs.error().message;
    ASSERT_EQ(outputs->size(), each.outputs.size()) << row.name;
    for (std::size_t at = 0; at < outputs->size(); ++at) {
      EXPECT_EQ(text((*outputs)[at]), text(each.outputs[at])) << row.name << " " << at;
    }
  }
  for (int op = 0; op < kOps; ++op) {
    EXPECT_TRUE(seen[static_cast<std::size_t>(op)]) << name_of(static_cast<Op>(op));
  }
}

TEST(Types, are_named_once_each) {
  std::vector<std::string_view> names;
  names.reserve(kOps);
  for (int op = 0; op < kOps; ++op) {
    names.push_back(name_of(static_cast<Op>(op)));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(TypesDeathTest, need_their_attributes) {
  Node node;
  node.op = Op::cast;
  const Types inputs = {f32(Shape{2})};
  EXPECT_DEATH(static_cast<void>(definition(Op::cast).outputs(node, inputs)),
               "an attribute that an op needs");
}

}  // namespace
}  // namespace halfwatt
