#include "engine/plan/shadow.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"
#include "engine/models/vit.h"
#include "engine/ops/builder.h"
#include "engine/ops/verify.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/update.h"
#include "engine/plan/random_graph.h"

namespace halfwatt {
namespace {

// Devices that need scratch memory of made-up sizes, some none.
std::vector<Target> targets(int count) {
  std::vector<Target> all(static_cast<std::size_t>(count));
  for (Target& each : all) {
    each.id = *DeviceId::parse("cpu");
    each.workspace = [](const Graph& graph, int node) {
      const std::size_t bytes =
          graph.node(node).outputs.empty() ? 0 : graph.node(node).outputs[0].bytes();
      return node % 3 == 0 ? std::size_t{0} : bytes / 2 + static_cast<std::size_t>(node % 100);
    };
  }
  return all;
}

Plan planned(const Graph& graph, int devices = 1) {
  const auto legal = verify(graph);
  EXPECT_TRUE(legal) << legal.error().message;
  auto plan = lower(graph, targets(devices));
  EXPECT_TRUE(plan) << plan.error().message;
  return std::move(*plan);
}

Interleaving at_random(std::uint64_t seed) {
  return [rng = Rng(seed)](const std::vector<int>& ready) mutable {
    return static_cast<std::size_t>(rng.next() % ready.size());
  };
}

// The last device that can: whoever must wait for the first ones is late.
std::size_t in_reverse(const std::vector<int>& ready) { return ready.size() - 1; }

std::optional<std::string> fault_in_any_order(const Plan& plan, std::uint64_t seed) {
  for (const Interleaving& next : {Interleaving(in_turn), Interleaving(in_reverse),
                                   at_random(seed), at_random(seed + 1)}) {
    if (auto fault = first_fault(plan, next)) {
      return fault;
    }
  }
  return std::nullopt;
}

struct Named {
  std::string name;
  Graph graph;
};

// What a run of a micro ViT is made of.
std::vector<Named> micro_graphs(const Precision& precision) {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.drop_path = 0.1;
  config.dropout = 0.1;
  Optimizer optimizer;
  optimizer.average = 0.999;
  optimizer.max_norm = 1;
  const auto in_precision = [&](ModelMode mode) {
    return *with_precision(vit(config, 2, mode), precision, {});
  };
  const Graph train = in_precision(ModelMode::train);
  const Graph micro = with_accumulation(with_gradients(train, precision, 4), precision);
  std::vector<Named> all = {
      {"infer", in_precision(ModelMode::infer)},
      {"evaluate", in_precision(ModelMode::evaluate)},
      {"whole", with_update(with_gradients(train, precision, 1), precision, optimizer)},
      {"micro", micro},
      {"update", update_of(micro, precision, optimizer)}};
  optimizer.kind = Optimizer::Kind::sgd;
  all.push_back(
      {"sgd", with_update(with_gradients(train, precision, 1), precision, optimizer)});
  return all;
}

TEST(ShadowBytes, are_all_fresh_in_plans_of_five_hundred_random_graphs) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = random_graph(seed);
    const auto fault = first_fault(planned(graph));
    ASSERT_FALSE(fault) << "seed " << seed << ": " << *fault << "\n" << text(graph);
  }
}

TEST(ShadowBytes, are_all_fresh_on_two_and_three_devices_in_any_order_that_the_waits_allow) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const int devices = 2 + static_cast<int>(seed % 2);
    const Graph graph = dealt_out(random_graph(seed), devices, seed);
    const auto fault = fault_in_any_order(planned(graph, devices), seed);
    ASSERT_FALSE(fault) << "seed " << seed << ": " << *fault << "\n" << text(graph);
  }
}

TEST(ShadowBytes, are_all_fresh_in_every_graph_of_a_model_in_every_precision) {
  for (const Precision& row : precisions()) {
    for (const Named& each : micro_graphs(row)) {
      const auto fault = first_fault(planned(each.graph));
      EXPECT_FALSE(fault) << row.name << " " << each.name << ": " << *fault;
    }
  }
}

TEST(ShadowBytes, are_all_fresh_where_a_model_is_dealt_out_to_two_devices) {
  for (const char* mode : {"amp-fp16", "bf16"}) {
    for (const Named& each : micro_graphs(*precision_named(mode))) {
      const Graph graph = dealt_out(each.graph, 2, 7);
      const auto fault = fault_in_any_order(planned(graph, 2), 7);
      EXPECT_FALSE(fault) << mode << " " << each.name << ": " << *fault;
    }
  }
}

// The random graphs would prove nothing if they did not contain what is hard.
TEST(RandomGraph, has_every_op_and_every_way_to_use_a_state) {
  std::vector<int> ops(kOps);
  int in_place = 0;
  int copied = 0;
  int read_only = 0;
  int results_of_reshapes = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = random_graph(seed);
    int writes = 0;
    for (const Node& node : graph.nodes()) {
      ++ops[static_cast<std::size_t>(node.op)];
      writes += node.op == Op::write ? 1 : 0;
    }
    int carried_out = 0;
    const Plan plan = planned(graph);
    for (const Step& step : plan.devices[0].steps) {
      carried_out += graph.node(step.node).op == Op::write ? 1 : 0;
    }
    copied += carried_out;
    in_place += writes - carried_out;
    read_only += static_cast<int>(graph.states().size()) - writes;
    for (const GraphResult& result : graph.results()) {
      results_of_reshapes += graph.node(result.value.node).op == Op::reshape ? 1 : 0;
    }
  }
  for (int op = 0; op < kOps; ++op) {
    const auto at = static_cast<std::size_t>(op);
    EXPECT_EQ(ops[at] > 0, static_cast<Op>(op) != Op::transfer) << name_of(static_cast<Op>(op));
  }
  EXPECT_GT(in_place, 300);
  EXPECT_GT(copied, 300);
  EXPECT_GT(read_only, 300);
  EXPECT_GT(results_of_reshapes, 50);
}

// The checker would prove nothing if it did not see a plan that is wrong.
class BrokenPlan : public testing::Test {
 protected:
  // y = gelu(x), z = x + y, s = s + z; result z.
  BrokenPlan() {
    Builder build(graph);
    const TensorType type{DType::f32, Shape{32}};
    const Value x = build.input("x", type);
    const Value y = build.add(Op::gelu, {x});
    const Value w = build.add(Op::scale, {x}, {{"factor", 2.0}});
    const Value z = build.add(Op::add, {w, y});
    const Value s = build.read({"s", StateRole::statistics, type, {}, 0});
    build.write("s", build.add(Op::add, {s, z}));
    graph.set_result("z", z);
    plan = planned(graph);
  }

  std::vector<Step>& steps() { return plan.devices[0].steps; }
  void expect_fault(const std::string& part) {
    const auto fault = first_fault(plan);
    ASSERT_TRUE(fault) << part;
    EXPECT_NE(fault->find(part), std::string::npos) << *fault;
  }

  Graph graph;
  Plan plan;
};

TEST_F(BrokenPlan, is_no_broken_one_to_begin_with) {
  ASSERT_EQ(steps().size(), 4U);
  EXPECT_EQ(first_fault(plan), std::nullopt);
}

TEST_F(BrokenPlan, writes_a_value_over_one_that_is_needed) {
  steps()[1].outputs[0].offset = steps()[0].outputs[0].offset;
  steps()[2].inputs[0].offset = steps()[0].outputs[0].offset;
  expect_fault("byte 0 of %2.0 where byte 0 of %1.0 is needed");
}

TEST_F(BrokenPlan, reads_what_nobody_wrote) {
  std::swap(steps()[1], steps()[2]);
  expect_fault("poison where byte 0 of %2.0 is needed");
}

TEST_F(BrokenPlan, has_a_workspace_on_its_input) {
  steps()[2].workspace = steps()[2].inputs[1];
  steps()[2].workspace.type = {DType::u8, Shape{8}};
  expect_fault("the workspace covers an input or output");
}

TEST_F(BrokenPlan, has_a_place_beyond_the_end_of_the_arena) {
  plan.devices[0].arena = 64;
  expect_fault("of 64");
}

TEST_F(BrokenPlan, leaves_out_a_step) {
  steps().pop_back();
  expect_fault("state s: byte 0 of %4.0 where byte 0 of %5.0 is needed");
}

TEST_F(BrokenPlan, gives_a_value_for_another_as_a_result) {
  plan.results[0].place = steps()[0].outputs[0];
  expect_fault("where byte 0 of %3.0 is needed");
}

TEST(BrokenPlanOfTwoDevices, does_not_wait) {
  const TensorType type{DType::f32, Shape{32}};
  Graph graph;
  Builder build(graph);
  const Value y = build.add(Op::gelu, {build.input("x", type)});
  build.set_device(1);
  const Value there = build.add(Op::transfer, {y}, {{"from", std::int64_t{0}}});
  graph.set_result("y", there);
  Plan plan = planned(graph, 2);
  EXPECT_EQ(fault_in_any_order(plan, 1), std::nullopt);
  plan.devices[1].steps[0].waits.clear();
  EXPECT_TRUE(fault_in_any_order(plan, 1));
  plan.devices[1].steps[0].waits = {{1, 0}};
  EXPECT_EQ(fault_in_any_order(plan, 1), "device 1 waits for ever");
}

}  // namespace
}  // namespace halfwatt
