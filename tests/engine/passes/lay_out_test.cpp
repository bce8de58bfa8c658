#include "engine/passes/lay_out.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/ops/builder.h"
#include "engine/passes/made_up.h"
#include "engine/passes/pipeline.h"

namespace halfwatt {
namespace {

const VitConfig kMicro = *vit_named("vit_micro_patch4_16");

Target liking_panels(std::string name) {
  Target target = made_up(std::move(name));
  target.panels = [](DType dtype, const Shape& weights) -> std::optional<Panels> {
    const Panels panels = dtype == DType::f32 ? Panels{16, 1} : Panels{32, 2};
    const bool liked = dtype == DType::f32 || dtype == DType::bf16;
    return liked && weights[0] % panels.columns == 0 ? std::optional(panels) : std::nullopt;
  };
  return target;
}

Graph forward(std::string_view mode, std::vector<Target> targets, bool fixed = true) {
  Compilation asked;
  asked.precision = *precision_named(mode);
  asked.targets = std::move(targets);
  asked.weights_are_fixed = fixed;
  auto compiled = compile(vit(kMicro, 2, ModelMode::infer), asked);
  EXPECT_TRUE(compiled) << compiled.error().message;
  return std::move(compiled->graph);
}

int count(const Graph& graph, Op op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const Node& node) { return node.op == op; }));
}

TEST(LayOut, makes_linear_nodes_of_all_layers_whose_features_fill_panels) {
  const Graph graph = forward("fp32", {liking_panels("cpu:0")});
  const auto depth = static_cast<int>(kMicro.depth);
  EXPECT_EQ(count(graph, Op::linear), 4 * depth);
  EXPECT_EQ(count(graph, Op::matmul), 1);  // the head: 1000 classes
  EXPECT_EQ(count(graph, Op::gelu), 0);
  const StateSpec* copy = graph.state("blocks.0.mlp.fc1.weight@f32/16x1");
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->role, StateRole::copy);
  EXPECT_EQ(copy->of, "blocks.0.mlp.fc1.weight");
  EXPECT_EQ(copy->panels, (Panels{16, 1}));
  EXPECT_EQ(copy->type, (TensorType{DType::f32, Shape{128, 32}}));
}

TEST(LayOut, leaves_out_the_weights_that_nobody_reads_any_more) {
  for (const std::string_view mode : {"fp32", "amp-bf16", "bf16"}) {
    const Graph graph = forward(mode, {liking_panels("cpu:0")});
    EXPECT_FALSE(graph.reader("blocks.0.mlp.fc1.weight")) << mode;
    EXPECT_FALSE(graph.reader("blocks.0.mlp.fc1.weight@bf16")) << mode;
  }
}

TEST(LayOut, takes_the_panels_of_the_dtype_that_is_multiplied) {
  const Graph graph = forward("amp-bf16", {liking_panels("cpu:0")});
  EXPECT_TRUE(graph.state("blocks.0.attn.qkv.weight@bf16/32x2"));
}

TEST(LayOut, leaves_products_alone_that_are_rounded_first) {
  EXPECT_EQ(count(forward("tf32", {liking_panels("cpu:0")}), Op::linear), 0);
  EXPECT_EQ(count(forward("fp8", {liking_panels("cpu:0")}), Op::linear), 0);
}

TEST(LayOut, leaves_weights_alone_that_somebody_may_change) {
  EXPECT_EQ(count(forward("fp32", {liking_panels("cpu:0")}, false), Op::linear), 0);
}

TEST(LayOut, leaves_targets_alone_that_like_no_panels) {
  EXPECT_EQ(count(forward("fp32", {made_up("cpu:0")}), Op::linear), 0);
}

TEST(LayOut, keeps_a_gelu_whose_input_is_a_result_too) {
  Graph graph;
  Builder build(graph);
  const Value x = build.input("x", {DType::f32, Shape{3, 8}});
  const Value weights =
      build.read({"w", StateRole::parameter, {DType::f32, Shape{16, 8}}, {}, 0});
  const Value bias = build.read({"b", StateRole::parameter, {DType::f32, Shape{16}}, {}, 0});
  const Value y = build.linear(x, weights, bias);
  graph.set_result("y", y);
  graph.set_result("z", build.add(Op::gelu, {y}));
  const std::vector<Target> targets = {liking_panels("cpu:0")};
  const Graph laid = with_panels(graph, targets);
  EXPECT_EQ(count(laid, Op::linear), 1);
  EXPECT_EQ(count(laid, Op::gelu), 1);
}

}  // namespace
}  // namespace halfwatt
