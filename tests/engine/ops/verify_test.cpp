#include "engine/ops/verify.h"

#include <gtest/gtest.h>

#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

const TensorType kType{DType::f32, Shape{2, 3}};
const StateSpec kState{"s", StateRole::parameter, kType, {}, 0};

// A graph that is legal until a test breaks one rule: y = gelu(x).
class Verify : public testing::Test {
 protected:
  Verify() {
    build.set_name("stem");
    x = build.input("x", kType);
    build.set_name("act");
    y = build.add(Op::gelu, {x});
  }

  Node& node(Value value) { return graph.node(value.node); }
  void expect_refused(const std::string& message) const {
    const auto legal = verify(graph);
    ASSERT_FALSE(legal) << message;
    EXPECT_EQ(legal.error().message, message);
    EXPECT_EQ(legal.error().kind, ErrorKind::bad_input);
  }
  void expect_legal() const {
    const auto legal = verify(graph);
    EXPECT_TRUE(legal) << legal.error().message;
  }

  Graph graph;
  Builder build{graph};
  Value x;
  Value y;
};

TEST_F(Verify, lets_a_legal_graph_pass) {
  graph.set_result("y", y);
  expect_legal();
  EXPECT_TRUE(verify(Graph()));
}

TEST_F(Verify, refuses_an_input_that_comes_after_its_use) {
  node(y).inputs = {{1, 0}};
  expect_refused("%1 gelu of act: input %1 does not come before it");
  node(y).inputs = {{-1, 0}};
  expect_refused("%1 gelu of act: input %-1 does not come before it");
}

TEST_F(Verify, refuses_an_output_that_does_not_exist) {
  node(y).inputs = {{0, 1}};
  expect_refused("%1 gelu of act: %0 has no output 1");
}

TEST_F(Verify, refuses_too_few_and_too_many_inputs) {
  node(y).inputs = {x, x};
  expect_refused("%1 gelu of act: 2 inputs, needs 1 to 1");
  node(y).inputs = {};
  expect_refused("%1 gelu of act: 0 inputs, needs 1 to 1");
}

TEST_F(Verify, refuses_inputs_that_the_op_refuses) {
  node(x).attributes.set("dtype", DType::i64);
  node(x).outputs = {{DType::i64, kType.shape}};
  expect_refused("%1 gelu of act: an input of i64 2x3, needs floats");
}

TEST_F(Verify, refuses_outputs_of_another_type_than_the_op_gives) {
  node(y).outputs[0].dtype = DType::f16;
  expect_refused("%1 gelu of act: its outputs are not what its op gives of its inputs");
  node(y).outputs.clear();
  expect_refused("%1 gelu of act: its outputs are not what its op gives of its inputs");
}

TEST_F(Verify, refuses_a_state_that_nobody_declared) {
  build.write("w", y);
  expect_refused("%2 write of act: state w is not declared");
}

TEST_F(Verify, refuses_a_state_of_another_type) {
  graph.declare({"w", StateRole::parameter, {DType::f16, kType.shape}, {}, 0});
  build.write("w", y);
  expect_refused("%2 write of act: f32 2x3 for state w, needs f16 2x3");
}

TEST_F(Verify, refuses_an_input_on_another_device_but_of_a_transfer) {
  build.set_device(1);
  const Value there = build.add(Op::transfer, {y});
  build.add(Op::gelu, {there});
  expect_legal();
  build.add(Op::gelu, {y});
  expect_refused("%4 gelu of act: input %1 is on device 0, the node on 1");
}

TEST_F(Verify, refuses_a_forward_node_that_depends_on_the_backward_part) {
  node(y).phase = Phase::backward;
  build.add(Op::gelu, {y});
  expect_refused("%2 gelu of act: forward, depends on %1, which is backward");
}

TEST_F(Verify, refuses_a_backward_node_that_depends_on_the_update) {
  node(y).phase = Phase::update;
  build.set_phase(Phase::backward);
  build.add(Op::gelu, {y});
  expect_refused("%2 gelu of act: backward, depends on %1, which is update");
}

TEST_F(Verify, refuses_a_second_read_of_a_state) {
  const Node again = graph.node(build.read(kState).node);
  graph.append(again);
  expect_refused("%3 read of act: state s is read twice");
}

TEST_F(Verify, refuses_a_second_write_of_a_state) {
  graph.declare(kState);
  build.write("s", y);
  expect_legal();
  build.write("s", x);
  expect_refused("%3 write of act: state s was written before");
}

TEST_F(Verify, refuses_a_read_of_a_state_that_was_written) {
  graph.declare(kState);
  build.write("s", y);
  build.read(kState);
  expect_refused("%3 read of act: state s was written before");
}

TEST_F(Verify, refuses_a_use_of_what_a_state_was_once_it_is_written) {
  const Value before = build.read(kState);
  build.write("s", y);
  expect_legal();
  build.add(Op::gelu, {before});
  expect_refused("%4 gelu of act: uses state s, which was written before");
}

TEST_F(Verify, refuses_such_a_use_through_reshapes_too) {
  const Value flat = build.reshape(build.read(kState), Shape{6});
  const Value row = build.reshape(flat, Shape{1, 6});
  build.write("s", y);
  build.add(Op::gelu, {row});
  expect_refused("%6 gelu of act: uses state s, which was written before");
}

// Its memory is in one place: another device has to be sent what is there.
TEST_F(Verify, refuses_a_state_on_two_devices) {
  build.read(kState);
  build.set_device(1);
  build.write("s", build.add(Op::transfer, {y}));
  expect_refused("%4 write of act: state s is on device 0, the node on 1");
}

TEST_F(Verify, refuses_two_inputs_of_one_name) {
  build.input("x", kType);
  expect_refused("%2 input of act: a second input x");
}

TEST_F(Verify, refuses_a_result_that_is_no_output) {
  graph.set_result("z", {2, 0});
  expect_refused("result z is no output of a node");
  graph.set_result("z", {1, 1});
  expect_refused("result z is no output of a node");
  graph.set_result("z", {-1, 0});
  expect_refused("result z is no output of a node");
}

TEST_F(Verify, refuses_a_result_that_is_a_state_before_it_is_written) {
  const Value before = build.read(kState);
  graph.set_result("before", build.reshape(before, Shape{6}));
  expect_legal();
  build.write("s", y);
  expect_refused("result before is state s before it is written");
}

TEST_F(Verify, lets_a_result_be_what_a_state_is_after_it_is_written) {
  const Value before = build.read(kState);
  const Value after = build.add(Op::add, {before, y});
  build.write("s", after);
  graph.set_result("after", after);
  expect_legal();
}

TEST_F(Verify, names_a_node_without_layer_by_its_op_alone) {
  build.set_name("");
  build.write("w", y);
  expect_refused("%2 write: state w is not declared");
}

}  // namespace
}  // namespace halfwatt
