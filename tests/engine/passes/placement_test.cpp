#include "engine/passes/placement.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/ops/op_def.h"
#include "engine/ops/verify.h"
#include "engine/passes/made_up.h"
#include "engine/passes/meaning.h"
#include "engine/passes/recompute.h"
#include "engine/plan/plan.h"

namespace halfwatt {
namespace {

const std::vector<Target> kTwo = {made_up("cpu:0"), made_up("cpu:1")};

VitConfig micro() {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.drop_path = 0.2;
  return config;
}

Placed placed(const Graph& graph, std::string_view rules, const std::vector<Target>& targets) {
  auto result = with_placement(graph, *placement_rules(rules), targets);
  EXPECT_TRUE(result) << result.error().message;
  const auto legal = verify(result->graph);
  EXPECT_TRUE(legal) << rules << ": " << legal.error().message;
  return *result;
}

std::string refusal(std::string_view rules) {
  const auto result =
      with_placement(step_of(micro(), 2, "amp-bf16"), *placement_rules(rules), kTwo);
  return result ? "" : result.error().message;
}

// Bytes of transfers in a phase, of layers that a name begins with.
double moved(const Graph& graph, Phase phase, std::string_view start) {
  double bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::transfer && node.phase == phase && node.name.find(start) == 0) {
      bytes += static_cast<double>(node.outputs[0].bytes());
    }
  }
  return bytes;
}

TEST(Placement, reads_rules_by_layer_and_by_precision) {
  const auto rules = placement_rules("blocks.[0,1].*=cpu:0,fp32=D1,16bit=D2");
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->size(), 3U);
  EXPECT_EQ((*rules)[0].what, "blocks.[0,1].*");
  EXPECT_EQ((*rules)[0].target, "cpu:0");
  EXPECT_TRUE((*rules)[0].dtypes.empty());
  EXPECT_EQ((*rules)[2].dtypes, (std::vector<DType>{DType::f16, DType::bf16}));
  for (const auto wrong : {"", "blocks", "=cpu:0", "blocks=", "a=b,", "a=b,,c=d"}) {
    EXPECT_FALSE(placement_rules(wrong)) << wrong;
  }
}

TEST(Placement, is_legal_and_computes_the_same_in_every_mode) {
  for (const Precision& row : precisions()) {
    for (const auto rules : {"blocks.0.*=cpu:1", "blocks.[0-1].*=cpu:1", "fp32=cpu:1",
                             "*attn*=cpu:1", "*norm*=cpu:1", "head.*=cpu:1,loss=cpu:1"}) {
      const Graph one = step_of(micro(), 2, row.name);
      const auto two = with_placement(one, *placement_rules(rules), kTwo);
      if (!two) {  // nothing computes in fp32 in that mode
        EXPECT_EQ(std::string_view(rules).substr(0, 4), "fp32") << two.error().message;
        continue;
      }
      const auto legal = verify(two->graph);
      ASSERT_TRUE(legal) << row.name << " " << rules << ": " << legal.error().message;
      EXPECT_EQ(meanings(two->graph), meanings(one)) << row.name << " " << rules;
      const Graph again = with_recompute(two->graph);
      const auto still = verify(again);
      ASSERT_TRUE(still) << row.name << " " << rules << ": " << still.error().message;
      EXPECT_EQ(meanings(again), meanings(one)) << row.name << " " << rules;
      EXPECT_TRUE(lower(again, kTwo)) << row.name << " " << rules;
    }
  }
}

TEST(Placement, leaves_a_graph_of_one_device_as_it_is) {
  const Graph one = step_of(micro(), 2, "amp-bf16");
  EXPECT_EQ(text(placed(one, "blocks.*=cpu:0", kTwo).graph), text(one));
}

TEST(Placement, moves_a_value_to_a_device_once) {
  for (const auto rules : {"blocks.0.*=cpu:1", "fp32=cpu:1", "*mlp*=cpu:1"}) {
    const Graph graph = placed(step_of(micro(), 2, "amp-bf16"), rules, kTwo).graph;
    std::set<std::pair<Value, int>> seen;
    int transfers = 0;
    for (const Node& node : graph.nodes()) {
      if (node.op == Op::transfer) {
        EXPECT_TRUE(seen.emplace(node.inputs[0], node.device).second) << node.name;
        EXPECT_EQ(node.attributes.integer("from"), graph.node(node.inputs[0].node).device);
        EXPECT_NE(node.attributes.integer("from"), node.device);
        ++transfers;
      }
    }
    EXPECT_GT(transfers, 4) << rules;
  }
}

TEST(Placement, keeps_all_of_a_parameter_where_it_is_used) {
  const Placed two = placed(step_of(micro(), 2, "amp-bf16"), "blocks.1.*=cpu:1", kTwo);
  EXPECT_EQ(two.homes.at("blocks.1.attn.qkv.weight"), 1);
  EXPECT_EQ(two.homes.at("head.weight"), 0);
  for (const Node& node : two.graph.nodes()) {
    const bool block = node.name.find("blocks.1.") == 0;
    if (node.op == Op::read || node.op == Op::write || node.op == Op::adamw) {
      EXPECT_EQ(node.device, block ? 1 : 0) << node.name;
    }
    if (node.op == Op::check_gradients || node.op == Op::learning_rate) {
      EXPECT_EQ(node.device, 0);
    }
  }
}

// Section 5 of the facts on mixed precision: per block the two norms' outputs and the two
// branches' outputs cross, A bytes each, and their gradients in the backward.
TEST(Placement, of_a_split_by_precision_moves_4_activations_a_block_and_direction) {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  const Graph graph =
      placed(step_of(config, 8, "amp-bf16"), "fp32=cpu:0,16bit=cpu:1", kTwo).graph;
  const double a = 8.0 * 17 * 32 * 2;
  EXPECT_EQ(moved(graph, Phase::forward, "blocks."), 2 * 4 * a);
  double activations = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::transfer && node.phase == Phase::backward &&
        node.outputs[0].shape == (Shape{8, 17, 32})) {
      activations += static_cast<double>(node.outputs[0].bytes());
    }
  }
  EXPECT_EQ(activations, 2 * 4 * a);
}

TEST(Placement, casts_on_the_side_that_moves_fewer_bytes) {
  const Graph graph =
      placed(step_of(micro(), 2, "amp-bf16"), "fp32=cpu:0,16bit=cpu:1", kTwo).graph;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::cast) {
      continue;
    }
    const Node& before = graph.node(node.inputs[0].node);
    const bool narrows = node.outputs[0].bytes() < before.outputs[0].bytes();
    EXPECT_FALSE(narrows && before.op == Op::transfer) << node.name;
  }
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::transfer) {
      const Node& before = graph.node(node.inputs[0].node);
      const bool widened =
          before.op == Op::cast &&
          before.outputs[0].bytes() > graph.node(before.inputs[0].node).outputs[0].bytes();
      EXPECT_FALSE(widened) << node.name;
    }
  }
}

TEST(Placement, makes_a_device_wait_for_what_it_is_given) {
  const Graph graph = placed(step_of(micro(), 2, "fp32"), "blocks.1.*=cpu:1", kTwo).graph;
  const auto plan = lower(graph, kTwo);
  ASSERT_TRUE(plan) << plan.error().message;
  int waits = 0;
  for (int device = 0; device < 2; ++device) {
    const auto& here = plan->devices[static_cast<std::size_t>(device)];
    EXPECT_GT(here.arena, 0U);
    for (const Step& step : here.steps) {
      for (const Wait& wait : step.waits) {
        EXPECT_NE(wait.device, device);
        const auto& there = plan->devices[static_cast<std::size_t>(wait.device)];
        EXPECT_LT(there.steps[static_cast<std::size_t>(wait.step)].node, step.node);
        ++waits;
      }
    }
  }
  EXPECT_GT(waits, 2);
}

TEST(Placement, puts_accumulators_and_their_update_on_one_device) {
  const Precision row = *precision_named("amp-fp16");
  const auto model = with_precision(vit(micro(), 2, ModelMode::train), row, {});
  const Graph micro_graph = with_accumulation(with_gradients(*model, row, 4), row);
  const Placed two = placed(micro_graph, "blocks.*=cpu:1", kTwo);
  const auto update = with_homes(update_of(micro_graph, row, {}), two.homes, kTwo);
  ASSERT_TRUE(update) << update.error().message;
  const auto legal = verify(*update);
  ASSERT_TRUE(legal) << legal.error().message;
  std::map<std::string, int> homes;
  for (const Graph* graph : {&two.graph, &*update}) {
    for (const Node& node : graph->nodes()) {
      if (node.op == Op::read || node.op == Op::write) {
        const auto [home, is_new] = homes.emplace(node.attributes.word("state"), node.device);
        EXPECT_EQ(home->second, node.device) << home->first;
      }
    }
  }
  EXPECT_EQ(homes.at("blocks.0.attn.qkv.weight.gradient"), 1);
  EXPECT_EQ(homes.at("head.weight.gradient"), 0);
}

TEST(Placement, puts_what_a_device_refuses_on_another_and_says_so) {
  std::vector<Target> targets = kTwo;
  targets[0].support = [](const Graph& graph, int id) -> Support {
    const bool norm = graph.node(id).op == Op::layer_norm;
    return norm ? Support{Support::Kind::refused, "it has no norms"} : Support{};
  };
  const Graph one = step_of(micro(), 2, "fp32");
  const auto two = with_placement(one, {}, targets);
  ASSERT_TRUE(two) << two.error().message;
  ASSERT_TRUE(verify(two->graph));
  EXPECT_EQ(meanings(two->graph), meanings(one));
  ASSERT_EQ(two->remarks.size(), 1U);
  EXPECT_EQ(two->remarks[0],
            "layer_norm of blocks.0.norm1 and 4 more: on cpu:1, as cpu:0 does not compute it: "
            "it has no norms");
  targets[1].support = targets[0].support;
  const auto nowhere = with_placement(one, {}, targets);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("it has no norms"), std::string::npos);
}

TEST(Placement, refuses_what_matches_nothing) {
  EXPECT_NE(refusal("block.0.*=cpu:0").find("no layer is called so"), std::string::npos);
  EXPECT_NE(refusal("fp16=cpu:0").find("nothing computes in this precision"),
            std::string::npos);
  EXPECT_NE(refusal("blocks.*=cpu:2").find("no device cpu:2; there are cpu:0, cpu:1"),
            std::string::npos);
}

}  // namespace
}  // namespace halfwatt
