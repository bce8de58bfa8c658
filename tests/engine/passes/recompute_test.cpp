#include "engine/passes/recompute.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/ops/op_def.h"
#include "engine/ops/verify.h"
#include "engine/passes/made_up.h"
#include "engine/passes/meaning.h"
#include "engine/plan/plan.h"

namespace halfwatt {
namespace {

VitConfig dropping() {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.drop_path = 0.2;
  return config;
}

double arena(const Graph& graph) {
  const std::vector<Target> targets = {made_up("one")};
  const auto plan = lower(graph, targets);
  EXPECT_TRUE(plan) << plan.error().message;
  return static_cast<double>(plan->devices[0].arena);
}

double flops(const Graph& graph) {
  double sum = 0;
  for (int id = 0; id < graph.size(); ++id) {
    sum += cost(graph, id).flops;
  }
  return sum;
}

TEST(Recompute, is_legal_and_computes_the_same_in_every_mode) {
  for (const Precision& row : precisions()) {
    const Graph plain = step_of(dropping(), 2, row.name);
    const Graph again = with_recompute(plain);
    const auto legal = verify(again);
    ASSERT_TRUE(legal) << row.name << ": " << legal.error().message;
    EXPECT_GT(again.size(), plain.size());
    EXPECT_EQ(meanings(again), meanings(plain)) << row.name;
  }
}

TEST(Recompute, draws_the_same_random_numbers) {
  const Graph again = with_recompute(step_of(dropping(), 2, "fp32"));
  std::map<std::string, int> draws;
  for (const Node& node : again.nodes()) {
    if (node.op == Op::drop_path) {
      EXPECT_EQ(again.node(node.inputs[1].node).op, Op::input);
      ++draws[node.attributes.word("path")];
    }
  }
  // The first branch is needed again, to get at the middle of the block; the second is not.
  EXPECT_EQ(draws["blocks.1.drop_path1"], 3);
  EXPECT_EQ(draws["blocks.1.drop_path2"], 2);
}

TEST(Recompute, leaves_nothing_of_the_forward_to_the_backward_of_a_block_but_its_input) {
  const Graph again = with_recompute(step_of(dropping(), 2, "amp-bf16"));
  for (const Node& node : again.nodes()) {
    if (node.phase != Phase::backward || node.name.find("blocks.") != 0) {
      continue;
    }
    const std::string block = node.name.substr(0, 8);
    for (const Value input : node.inputs) {
      const Node& from = again.node(input.node);
      EXPECT_FALSE(from.phase == Phase::forward && !from.inputs.empty() &&
                   from.name.substr(0, 8) == block)
          << node.name << " uses " << name_of(from.op) << " of " << from.name;
    }
  }
}

// A backward needs all of a block's forward but its last product, whose output only the next
// block needs.
TEST(Recompute, costs_one_forward_of_the_blocks_but_for_their_last_product) {
  VitConfig base = *vit_named("vit_base_patch16_224");
  base.classes = 1;
  const Graph plain = step_of(base, 8, "amp-bf16");
  double blocks = 0;
  double last = 0;
  for (int id = 0; id < plain.size(); ++id) {
    const Node& node = plain.node(id);
    if (node.phase == Phase::forward && node.name.find("blocks.") == 0) {
      blocks += cost(plain, id).flops;
      last += node.name.find("mlp.fc2") != std::string::npos ? cost(plain, id).flops : 0;
    }
  }
  EXPECT_DOUBLE_EQ(flops(with_recompute(plain)), flops(plain) + blocks - last);
}

// A = one [batch * tokens, width] tensor. Kept a block without recompute, 16-bit but for the
// fp32 residual stream (2A each): its input 2A, norm1 A as operand, qkv 3A, attention A,
// middle 2A, norm2 A, fc1 4A, gelu 4A. With it: its input 2A.
TEST(Recompute, lowers_the_peak_by_what_eleven_blocks_keep) {
  VitConfig base = *vit_named("vit_base_patch16_224");
  base.classes = 1;
  const Graph plain = step_of(base, 160, "amp-bf16");
  const double a = 160.0 * 197 * 768 * 2;
  const double saved = arena(plain) - arena(with_recompute(plain));
  EXPECT_NEAR(saved / a, 11 * 16, 0.05 * 11 * 16);
}

TEST(Recompute, leaves_inference_as_it_is) {
  const Graph graph = vit(dropping(), 2, ModelMode::infer);
  EXPECT_EQ(text(with_recompute(graph)), text(graph));
}

}  // namespace
}  // namespace halfwatt
