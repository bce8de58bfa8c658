#include "engine/passes/fuse.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/ops/op_def.h"
#include "engine/ops/verify.h"
#include "engine/passes/made_up.h"
#include "engine/passes/pipeline.h"

namespace halfwatt {
namespace {

const VitConfig kMicro = *vit_named("vit_micro_patch4_16");

Compilation training(std::string_view mode, Optimizer::Kind kind) {
  Compilation asked;
  asked.precision = *precision_named(mode);
  asked.optimizer = Optimizer();
  asked.optimizer->kind = kind;
  asked.targets = {made_up("cpu:0"), made_up("cpu:1")};
  return asked;
}

Compiled compiled(const Compilation& asked) {
  auto result = compile(vit(kMicro, 2, ModelMode::train), asked);
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

/// By decay: how many parameters each update node has.
std::multimap<double, std::size_t> updates(const Graph& graph) {
  std::multimap<double, std::size_t> found;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::adamw || node.op == Op::sgd) {
      found.emplace(node.attributes.number("decay"),
                    node.outputs.size() / (node.op == Op::adamw ? 4 : 3));
    }
  }
  return found;
}

std::size_t parameters() { return vit_parameters(kMicro).size(); }

// Under autocast norms have gradients of f32, and products of 16 bits: a node for each.
TEST(FuseUpdates, makes_one_node_of_parameters_that_decay_and_one_of_the_others) {
  for (const auto kind : {Optimizer::Kind::adamw, Optimizer::Kind::sgd}) {
    for (const std::string_view mode : {"fp32", "amp-fp16", "bf16", "O3"}) {
      const Graph graph = compiled(training(mode, kind)).graph;
      const auto found = updates(graph);
      ASSERT_EQ(found.size(), mode == "amp-fp16" ? 3U : 2U) << mode;
      std::size_t all = 0;
      for (const auto& [decay, count] : found) {
        all += count;
      }
      EXPECT_EQ(found.begin()->first, 0);
      EXPECT_GT(found.rbegin()->first, 0);
      EXPECT_EQ(all, parameters());
      for (const StateSpec& state : vit_parameters(kMicro)) {
        const auto tally = graph.result("tally:" + state.name);
        ASSERT_TRUE(tally);
        EXPECT_EQ(graph.type(*tally), (TensorType{DType::i64, Shape{2}}));
      }
    }
  }
}

TEST(FuseUpdates, read_gradients_as_narrow_as_products_gave_them) {
  const Graph graph = compiled(training("amp-fp16", Optimizer::Kind::adamw)).graph;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::cast && node.phase != Phase::forward) {
      EXPECT_NE(graph.type(node.inputs[0]).dtype, DType::f16) << node.name;
    }
  }
  const auto gradient = graph.result("gradient:blocks.0.mlp.fc1.weight");
  ASSERT_TRUE(gradient);
  EXPECT_EQ(graph.type(*gradient).dtype, DType::f16);
}

TEST(FuseUpdates, leaves_them_alone_where_the_pass_is_skipped) {
  Compilation asked = training("fp32", Optimizer::Kind::adamw);
  asked.skip = {"fuse"};
  EXPECT_EQ(updates(compiled(asked).graph).size(), parameters());
}

TEST(FuseUpdates, leaves_those_alone_that_are_rounded_with_random_numbers_of_their_own) {
  Compilation asked = training("bf16", Optimizer::Kind::adamw);
  asked.precision.stochastic = true;
  EXPECT_EQ(updates(compiled(asked).graph).size(), parameters());
}

TEST(FuseUpdates, keeps_dtypes_apart) {
  Compilation asked = training("bf16", Optimizer::Kind::adamw);
  asked.optimizer->decay_all = true;
  asked.overrides = {*precision_override("head.*=fp32")};
  const auto found = updates(compiled(asked).graph);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(std::min(found.begin()->second, found.rbegin()->second), 2U);  // weight and bias
}

TEST(FuseUpdates, keeps_devices_apart) {
  Compilation asked = training("fp32", Optimizer::Kind::adamw);
  asked.optimizer->decay_all = true;
  asked.place = *placement_rules("blocks.*=cpu:1");
  const Graph graph = compiled(asked).graph;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::adamw) {
      for (const Value input : node.inputs) {
        EXPECT_EQ(graph.node(input.node).device, node.device);
      }
    }
  }
  EXPECT_LT(updates(graph).size(), parameters() / 4);
}

TEST(FuseUpdates, is_done_in_the_update_of_several_micro_batches) {
  Compilation asked = training("amp-bf16", Optimizer::Kind::sgd);
  asked.micro_batches = 4;
  asked.print_after = "fuse";
  const Compiled both = compiled(asked);
  ASSERT_TRUE(both.update);
  EXPECT_EQ(updates(*both.update).size(), 2U);
  EXPECT_TRUE(verify(*both.update));
}

TEST(FuseNormGradient, reads_the_narrow_gradient_of_products_where_norms_are_wide) {
  const Graph graph = compiled(training("amp-bf16", Optimizer::Kind::adamw)).graph;
  int narrow = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::layer_norm_gradient && node.name.rfind("blocks.", 0) == 0) {
      EXPECT_EQ(graph.type(node.inputs[0]).dtype, DType::bf16) << node.name;
      EXPECT_EQ(node.outputs[0].dtype, DType::f32) << node.name;
      ++narrow;
    }
  }
  EXPECT_EQ(narrow, 2 * kMicro.depth);
}

}  // namespace
}  // namespace halfwatt
