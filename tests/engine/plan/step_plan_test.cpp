#include "engine/plan/step_plan.h"

#include <gtest/gtest.h>

#include "engine/ops/builder.h"
#include "engine/passes/made_up.h"
#include "engine/passes/pipeline.h"

namespace halfwatt {
namespace {

// A second for each MB that is read or written, nothing for products, half one for a transfer.
Target slow(std::string name) {
  Target target = made_up(std::move(name));
  target.bytes_per_second = 1e6;
  target.launch = Seconds(0);
  target.link = 2e6;
  target.latency = Seconds(0);
  return target;
}

const TensorType kMegabyte{DType::f32, Shape{250'000}};

Value scale(Builder& build, Value x, int device) {
  build.set_device(device);
  return build.add(Op::scale, {x}, {{"factor", 2.0}});
}

StepTime prediction(const Graph& graph, const std::vector<Target>& targets) {
  const auto plan = lower(graph, targets);
  EXPECT_TRUE(plan) << plan.error().message;
  return *predict(*plan, targets);
}

TEST(StepPlan, lets_devices_work_at_once_on_what_is_apart) {
  Graph graph;
  Builder build(graph);
  for (const int device : {0, 1}) {
    build.set_device(device);
    const Value x = build.input("x" + std::to_string(device), kMegabyte);
    graph.set_result("y" + std::to_string(device), scale(build, x, device));
  }
  const StepTime both = prediction(graph, {slow("a"), slow("b")});
  EXPECT_DOUBLE_EQ(both.time.value(), 2);
  EXPECT_DOUBLE_EQ(both.busy[0].value(), 2);
  EXPECT_DOUBLE_EQ(both.busy[1].value(), 2);
}

TEST(StepPlan, lets_a_device_wait_for_what_it_is_given) {
  Graph graph;
  Builder build(graph);
  const Value x = scale(build, build.input("x", kMegabyte), 0);
  build.set_device(1);
  const Value there = build.add(Op::transfer, {x}, {{"from", std::int64_t{0}}});
  graph.set_result("y", scale(build, there, 1));
  const StepTime both = prediction(graph, {slow("a"), slow("b")});
  EXPECT_DOUBLE_EQ(both.time.value(), 2 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(both.busy[0].value(), 2);
  EXPECT_DOUBLE_EQ(both.busy[1].value(), 2.5);
}

TEST(StepPlan, does_not_guess_where_rates_are_unknown) {
  Graph graph;
  Builder build(graph);
  graph.set_result("y", scale(build, build.input("x", kMegabyte), 0));
  Target cpu;
  cpu.name = "cpu";
  const std::vector<Target> targets = {cpu};
  EXPECT_FALSE(predict(*lower(graph, targets), targets));
}

StepPlan step(int micro_batches, std::int64_t batch) {
  Compilation asked;
  asked.precision = *precision_named("amp-bf16");
  asked.optimizer = Optimizer();
  asked.micro_batches = micro_batches;
  asked.targets = {made_up("one")};
  const auto model = vit(*vit_named("vit_micro_patch4_16"), batch, ModelMode::train);
  const auto compiled = compile(model, asked);
  EXPECT_TRUE(compiled) << compiled.error().message;
  return *lower_step(compiled->graph, compiled->update, micro_batches, asked.targets);
}

TEST(StepPlan, has_accumulators_only_of_several_micro_batches) {
  const Footprint whole = step(1, 8).footprint(0);
  const Footprint parts = step(4, 2).footprint(0);
  EXPECT_EQ(whole.accumulators, 0U);
  EXPECT_GT(parts.accumulators, 0U);
  EXPECT_EQ(whole.parameters, parts.parameters);
  EXPECT_EQ(whole.moments, parts.moments);
  EXPECT_EQ(whole.others, parts.others);
  EXPECT_LT(parts.inputs, whole.inputs);
}

TEST(StepPlan, takes_as_long_as_its_micro_batches_and_the_update) {
  const std::vector<Target> targets = {made_up("one")};
  const StepPlan four = step(4, 2);
  const auto all = predict(four, targets);
  const auto micro = predict(four.plan, targets);
  const auto update = predict(*four.update, targets);
  ASSERT_TRUE(all && micro && update);
  EXPECT_DOUBLE_EQ(all->time.value(), 4 * micro->time.value() + update->time.value());
}

}  // namespace
}  // namespace halfwatt
