#include "engine/graph/graph.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

const TensorType kType{DType::f32, Shape{2, 3}};

StateSpec state(const std::string& name) { return {name, StateRole::parameter, kType, {}, 0}; }

Node reading(const std::string& name) {
  Node node;
  node.op = Op::read;
  node.attributes = {{"state", name}};
  node.outputs = {kType};
  return node;
}

TEST(Graph, numbers_its_nodes_in_the_order_in_which_they_come) {
  Graph graph;
  EXPECT_EQ(graph.size(), 0);
  EXPECT_EQ(graph.append(reading("a")), 0);
  EXPECT_EQ(graph.append(reading("b")), 1);
  EXPECT_EQ(graph.size(), 2);
  EXPECT_EQ(graph.type({1, 0}), kType);
}

TEST(Graph, declares_a_state_once) {
  Graph graph;
  graph.declare(state("a"));
  graph.declare(state("b"));
  graph.declare(state("a"));
  ASSERT_EQ(graph.states().size(), 2U);
  EXPECT_EQ(graph.states()[0].name, "a");
  EXPECT_EQ(graph.state("b")->name, "b");
  EXPECT_EQ(graph.state("c"), nullptr);
}

TEST(GraphDeathTest, has_no_two_states_of_one_name) {
  Graph graph;
  graph.declare(state("a"));
  StateSpec other = state("a");
  other.type.dtype = DType::f16;
  EXPECT_DEATH(graph.declare(other), "two states of one name");
  other = state("a");
  other.role = StateRole::moment;
  EXPECT_DEATH(graph.declare(other), "two states of one name");
}

TEST(Graph, knows_who_reads_a_state) {
  Graph graph;
  graph.declare(state("a"));
  EXPECT_EQ(graph.reader("a"), std::nullopt);
  graph.append(reading("b"));
  graph.append(reading("a"));
  EXPECT_EQ(graph.reader("a"), (Value{1, 0}));
  const Graph copy = graph;
  EXPECT_EQ(copy.reader("b"), (Value{0, 0}));
}

TEST(Graph, has_one_result_of_a_name_the_last_that_was_set) {
  Graph graph;
  graph.append(reading("a"));
  graph.append(reading("b"));
  graph.set_result("y", {0, 0});
  graph.set_result("z", {0, 0});
  graph.set_result("y", {1, 0});
  ASSERT_EQ(graph.results().size(), 2U);
  EXPECT_EQ(graph.result("y"), (Value{1, 0}));
  EXPECT_EQ(graph.result("z"), (Value{0, 0}));
  EXPECT_EQ(graph.result("x"), std::nullopt);
}

}  // namespace
}  // namespace halfwatt
