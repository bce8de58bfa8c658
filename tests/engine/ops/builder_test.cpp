#include "engine/ops/builder.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/failure.h"

namespace halfwatt {
namespace {

const TensorType kType{DType::f32, Shape{2, 3}};

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no refusal";
}

class BuilderTest : public testing::Test {
 protected:
  Graph graph;
  Builder build{graph};
};

TEST_F(BuilderTest, refuses_inputs_that_do_not_fit_with_the_layer_and_the_op) {
  const Value x = build.input("x", kType);
  build.set_name("head");
  EXPECT_EQ(refusal([&] { build.linear(x, x, x); }),
            "head: matmul: a bias of f32 2x3, needs 2");
  EXPECT_EQ(refusal([&] { build.add(Op::add, {x}); }), "add: 1 inputs, needs 2 to 2");
  EXPECT_EQ(graph.size(), 1);
}

TEST_F(BuilderTest, gives_nodes_the_name_phase_and_device_that_were_set_last) {
  const Value x = build.input("x", kType);
  build.set_name("act");
  build.set_phase(Phase::backward);
  build.set_device(1);
  const Node& node = graph.node(build.add(Op::transfer, {x}).node);
  EXPECT_EQ(node.name, "act");
  EXPECT_EQ(node.phase, Phase::backward);
  EXPECT_EQ(node.device, 1);
  EXPECT_EQ(graph.node(x.node).device, 0);
}

TEST_F(BuilderTest, adds_no_node_that_would_change_nothing) {
  const Value x = build.input("x", kType);
  EXPECT_EQ(build.cast(x, DType::f32), x);
  EXPECT_EQ(build.reshape(x, Shape{2, 3}), x);
  EXPECT_EQ(build.sum_to(x, Shape{2, 3}), x);
  EXPECT_EQ(graph.size(), 1);
}

TEST_F(BuilderTest, reads_a_state_once) {
  const StateSpec weight{"w", StateRole::parameter, kType, {}, 0};
  const Value w = build.read(weight);
  EXPECT_EQ(build.read(weight), w);
  EXPECT_EQ(graph.size(), 1);
  EXPECT_EQ(graph.states().size(), 1U);
}

}  // namespace
}  // namespace halfwatt
