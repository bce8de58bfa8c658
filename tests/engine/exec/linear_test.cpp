#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "engine/exec/cpu_run.h"
#include "engine/ops/builder.h"
#include "engine/passes/lay_out.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kRows = 37;
constexpr std::int64_t kWidth = 96;
constexpr std::int64_t kFeatures = 128;

Tensor normal(const TensorType& type, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
  for (double& value : values) {
    value = rng.normal();
  }
  return tensor_of(type, values);
}

// x w^T + b, and GELU.
Graph layer(DType dtype) {
  Graph graph;
  Builder build(graph);
  const auto parameter = [&](const std::string& name, Shape shape) {
    return build.read({name, StateRole::parameter, {dtype, shape}, {}, 0});
  };
  const Value x = build.input("x", {dtype, Shape{kRows, kWidth}});
  const Value weights = parameter("w", Shape{kFeatures, kWidth});
  const Value bias = parameter("b", Shape{kFeatures});
  graph.set_result("y", build.add(Op::gelu, {build.linear(x, weights, bias)}));
  return graph;
}

std::vector<double> computed(const Graph& graph, const std::string& weights, DType dtype) {
  CpuRun run(graph, 2);
  run.load(weights, normal({dtype, Shape{kFeatures, kWidth}}, 1));
  run.load("b", normal({dtype, Shape{kFeatures}}, 2));
  run.bind("x", normal({dtype, Shape{kRows, kWidth}}, 3));
  run.run();
  return doubles(run.result("y"));
}

TEST(Linear, computes_what_the_product_and_the_gelu_did_whose_place_it_takes) {
  const auto backend = std::move(*open_cpu());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto panels = backend->target().panels(dtype, Shape{kFeatures, kWidth});
    ASSERT_TRUE(panels);
    const Graph graph = layer(dtype);
    const Graph laid = with_panels(graph, {&backend->target(), 1});
    ASSERT_EQ(laid.node(laid.result("y")->node).op, Op::linear);
    const auto wanted = computed(graph, "w", dtype);
    const std::string copy = "w@" + std::string(text(dtype)) + "/" +
                             std::to_string(panels->columns) + "x" +
                             std::to_string(panels->steps);
    const auto got = computed(laid, copy, dtype);
    // Sums of 96 products of normal numbers in fp32, stored once more in the format.
    const double unit = dtype == DType::bf16 ? 0x1p-7 : 1e-5;
    for (std::size_t at = 0; at < wanted.size(); ++at) {
      ASSERT_NEAR(got[at], wanted[at], unit * (1 + std::abs(wanted[at]))) << text(dtype);
    }
  }
}

TEST(Linear, reads_a_copy_that_follows_its_parameter_and_is_saved_as_it_was_loaded) {
  const auto backend = std::move(*open_cpu());
  const Graph laid = with_panels(layer(DType::f32), {&backend->target(), 1});
  const StateSpec* spec = nullptr;
  for (const StateSpec& state : laid.states()) {
    spec = state.panels.columns > 0 ? &state : spec;
  }
  ASSERT_TRUE(spec);
  States states;
  states.ensure({"w", StateRole::parameter, spec->type, {}, 0}, *backend);
  states.ensure(*spec, *backend);
  const Tensor weights = normal(spec->type, 4);
  ASSERT_TRUE(states.load("w", weights.view()));
  EXPECT_EQ(doubles(states.save(spec->name)), doubles(weights));
  EXPECT_TRUE(states.is_current(spec->name));
}

}  // namespace
}  // namespace halfwatt
