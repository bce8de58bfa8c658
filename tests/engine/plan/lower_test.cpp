#include <gtest/gtest.h>

#include <chrono>

#include "engine/models/vit.h"
#include "engine/ops/builder.h"
#include "engine/ops/verify.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/update.h"
#include "engine/plan/plan.h"

namespace halfwatt {
namespace {

const TensorType kType{DType::f32, Shape{4, 8}};

StateSpec state(const std::string& name) { return {name, StateRole::parameter, kType, {}, 0}; }

std::vector<Target> targets(int count = 1) {
  std::vector<Target> all(static_cast<std::size_t>(count));
  for (Target& each : all) {
    each.id = *DeviceId::parse("cpu");
  }
  return all;
}

Plan planned(const Graph& graph, int devices = 1) { return *lower(graph, targets(devices)); }

class Lower : public testing::Test {
 protected:
  int writes(const Plan& plan) const {
    int count = 0;
    for (const Step& step : plan.devices[0].steps) {
      count += graph.node(step.node).op == Op::write ? 1 : 0;
    }
    return count;
  }

  Graph graph;
  Builder build{graph};
};

TEST_F(Lower, makes_no_step_of_inputs_reads_and_reshapes) {
  const Value x = build.input("x", kType);
  const Value y = build.add(Op::add, {build.read(state("s")), x});
  graph.set_result("y", build.reshape(y, Shape{32}));
  const Plan plan = planned(graph);
  ASSERT_EQ(plan.devices[0].steps.size(), 1U);
  EXPECT_EQ(plan.devices[0].steps[0].node, y.node);
  EXPECT_EQ(plan.results[0].place.offset, plan.devices[0].steps[0].outputs[0].offset);
  EXPECT_EQ(plan.results[0].place.type, (TensorType{DType::f32, Shape{32}}));
}

TEST_F(Lower, updates_a_state_where_it_lies_if_nobody_needs_what_was_there) {
  const Value before = build.read(state("s"));
  build.write("s", build.add(Op::scale, {before}, {{"factor", 2.0}}));
  const Plan plan = planned(graph);
  EXPECT_EQ(writes(plan), 0);
  EXPECT_EQ(plan.devices[0].arena, 0U);
  EXPECT_EQ(plan.devices[0].steps[0].outputs[0].space, Place::Space::state);
}

TEST_F(Lower, copies_into_a_state_whose_old_value_is_used_meanwhile) {
  const Value before = build.read(state("s"));
  const Value after = build.add(Op::scale, {before}, {{"factor", 2.0}});
  graph.set_result("sum", build.add(Op::add, {before, after}));
  build.write("s", after);
  EXPECT_EQ(writes(planned(graph)), 1);
}

TEST_F(Lower, copies_into_a_state_from_an_op_that_may_not_overwrite_its_input) {
  const StateSpec square{"s", StateRole::parameter, {DType::f32, Shape{4, 4}}, {}, 0};
  const Value before = build.read(square);
  build.write("s", build.linear(before, before, std::nullopt));
  EXPECT_EQ(writes(planned(graph)), 1);
}

// may_overwrite() is a promise about inputs and outputs of one type.
TEST_F(Lower, copies_into_a_state_that_the_op_reads_in_another_shape) {
  const StateSpec row{"s", StateRole::parameter, {DType::f32, Shape{1, 8}}, {}, 0};
  const Value flat = build.reshape(build.read(row), Shape{8});
  build.write("s", build.add(Op::add, {build.input("x", row.type), flat}));
  EXPECT_EQ(writes(planned(graph)), 1);
}

TEST_F(Lower, does_nothing_to_write_back_what_was_read) {
  build.write("s", build.read(state("s")));
  EXPECT_TRUE(planned(graph).devices[0].steps.empty());
}

TEST_F(Lower, copies_a_value_of_two_states_into_the_second) {
  const Value x = build.add(Op::gelu, {build.input("x", kType)});
  for (const char* name : {"a", "b"}) {
    graph.declare(state(name));
    build.write(name, x);
  }
  const Plan plan = planned(graph);
  EXPECT_EQ(writes(plan), 1);
  EXPECT_EQ(plan.devices[0].steps[0].outputs[0].space, Place::Space::state);
  EXPECT_EQ(plan.devices[0].steps[1].inputs[0].index, 0);
  EXPECT_EQ(plan.devices[0].steps[1].outputs[0].index, 1);
}

TEST_F(Lower, waits_with_a_state_until_another_device_has_what_was_there) {
  const Value before = build.read(state("s"));
  build.set_device(1);
  const Value there = build.add(Op::transfer, {before}, {{"from", std::int64_t{0}}});
  graph.set_result("there", there);
  build.set_device(0);
  build.write("s", build.add(Op::scale, {before}, {{"factor", 2.0}}));
  const Plan plan = planned(graph, 2);
  ASSERT_EQ(plan.devices[0].steps.size(), 2U);
  EXPECT_TRUE(plan.devices[0].steps[0].waits.empty());
  EXPECT_EQ(plan.devices[0].steps[1].waits, std::vector<Wait>({{1, 0}}));
}

TEST_F(Lower, gives_a_step_without_scratch_memory_a_workspace_of_no_bytes) {
  graph.set_result("y", build.add(Op::gelu, {build.input("x", kType)}));
  const TensorType none{DType::u8, Shape{0}};
  EXPECT_EQ(planned(graph).devices[0].steps[0].workspace.type, none);
}

TEST_F(Lower, refuses_a_node_that_its_target_refuses_and_says_why) {
  build.set_name("act");
  graph.set_result("y", build.add(Op::gelu, {build.input("x", kType)}));
  auto devices = targets();
  devices[0].support = [](const Graph& all, int node) {
    return all.node(node).op == Op::gelu
               ? Support{Support::Kind::refused, "there is no kernel for f32"}
               : Support{};
  };
  const auto plan = lower(graph, devices);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message,
            "%1 gelu of act: cpu does not compute it: there is no kernel for f32");
}

TEST_F(Lower, lists_states_and_inputs_with_the_device_that_holds_them) {
  const Value x = build.input("x", kType);
  build.read(state("a"));
  build.set_device(1);
  build.read(state("b"));
  build.input("y", kType);
  graph.declare(state("unused"));
  graph.set_result("x", x);
  const Plan plan = planned(graph, 2);
  EXPECT_EQ(plan.devices[0].states, std::vector<int>{0});
  EXPECT_EQ(plan.devices[0].inputs, std::vector<int>{0});
  EXPECT_EQ(plan.devices[1].states, std::vector<int>{1});
  EXPECT_EQ(plan.devices[1].inputs, std::vector<int>{1});
}

Graph training(std::string_view model, std::int64_t batch, const Precision& row) {
  const Graph forward =
      *with_precision(vit(*vit_named(model), batch, ModelMode::train), row, {});
  return with_update(with_gradients(forward, row, 1), row, {});
}

TEST(Footprint, is_the_sum_of_states_by_role_of_inputs_and_of_the_arena) {
  const Graph graph = training("vit_micro_patch4_16", 2, *precision_named("amp-fp16"));
  std::map<StateRole, std::size_t> bytes;
  for (const StateSpec& each : graph.states()) {
    bytes[each.role] += aligned(each.type.bytes());
  }
  auto devices = targets();
  devices[0].workspace = [](const Graph& all, int node) -> std::size_t {
    return all.node(node).op == Op::matmul ? 1000 : 0;
  };
  const Plan plan = *lower(graph, devices);
  const Footprint sum = footprint(plan, 0);
  EXPECT_EQ(sum.parameters, bytes[StateRole::parameter] + bytes[StateRole::copy]);
  EXPECT_EQ(sum.moments, bytes[StateRole::moment]);
  EXPECT_EQ(sum.accumulators, 0U);
  EXPECT_EQ(sum.others, bytes[StateRole::counter] + bytes[StateRole::scaler]);
  EXPECT_EQ(sum.arena, plan.devices[0].arena);
  EXPECT_EQ(sum.inputs, 2U * 3 * 16 * 16 * 4 + 64 + 64);  // images, labels and how many count
  EXPECT_EQ(sum.largest_workspace, 1000U);
  EXPECT_EQ(sum.total(), sum.parameters + sum.moments + sum.others + sum.arena + sum.inputs);
}

TEST(Footprint, has_the_accumulators_of_micro_batches) {
  const Precision row = *precision_named("amp-bf16");
  const Graph forward =
      *with_precision(vit(*vit_named("vit_micro_patch4_16"), 2, ModelMode::train), row, {});
  const Graph micro = with_accumulation(with_gradients(forward, row, 4), row);
  const Footprint sum = footprint(planned(micro), 0);
  std::size_t gradients = 0;
  for (const StateSpec& each : vit_parameters(*vit_named("vit_micro_patch4_16"))) {
    gradients += aligned(each.type.bytes());
  }
  EXPECT_EQ(sum.accumulators, gradients);
  EXPECT_EQ(sum.moments, 0U);
}

TEST(Footprint, of_two_devices_is_that_of_each) {
  Graph graph;
  Builder build(graph);
  const Value y = build.add(Op::add, {build.input("x", kType), build.read(state("s"))});
  build.set_device(1);
  graph.set_result("y", build.add(Op::transfer, {y}, {{"from", std::int64_t{0}}}));
  const Plan plan = planned(graph, 2);
  EXPECT_EQ(footprint(plan, 0).total(), 3 * kType.bytes());
  EXPECT_EQ(footprint(plan, 1).total(), kType.bytes());
}

// Some 20 ms of 3,700 nodes and 1,100 states on one core of a small machine: nothing quadratic
// is felt. The bound leaves room for sanitizers.
TEST(Lowering, of_the_training_of_a_large_model_is_quick) {
  const Graph graph = training("vit_large_patch16_224", 8, *precision_named("amp-fp16"));
  const auto begin = std::chrono::steady_clock::now();
  const Plan plan = planned(graph);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  RecordProperty("nodes", graph.size());
  RecordProperty("states", static_cast<int>(graph.states().size()));
  RecordProperty("milliseconds", std::to_string(took.count() * 1e3));
  EXPECT_LT(took.count(), 1) << graph.size() << " nodes";
  EXPECT_GT(plan.devices[0].steps.size(), 1000U);
}

}  // namespace
}  // namespace halfwatt
