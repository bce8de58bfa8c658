#include "engine/passes/autodiff.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/failure.h"
#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

/// What is said of a model whose loss cannot be differentiated; "" if it can.
std::string refusal(const std::function<Value(Builder&)>& loss) {
  Graph graph;
  Builder build(graph);
  build.set_name("layer");
  graph.set_result("loss", loss(build));
  try {
    with_gradients(graph, *precision_named("fp32"), 1);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::bad_input);
    return failure.error().message;
  }
  return "";
}

Value parameter(Builder& build, const char* name, Shape shape) {
  return build.read({name, StateRole::parameter, {DType::f32, shape}, {}, 0});
}

Value mean_of_rows(Builder& build, Value rows) {
  return build.add(Op::mean, {rows}, {{"axis", std::int64_t{0}}});
}

TEST(Autodiff, refuses_a_loss_of_an_output_that_has_no_gradient) {
  EXPECT_EQ(refusal([](Builder& build) {
              const Value norm = build.add(
                  Op::layer_norm,
                  {parameter(build, "x", Shape{4, 3}), parameter(build, "gamma", Shape{3}),
                   parameter(build, "beta", Shape{3})},
                  {{"eps", 1e-6}});
              return mean_of_rows(build, Builder::output(norm, 1));
            }),
            "layer: layer_norm: the loss depends on parameters through output 1, which has no "
            "gradient");
  EXPECT_EQ(refusal([](Builder& build) {
              const Value labels = build.input("labels", {DType::i64, Shape{4}});
              const Value valid = build.input("valid", {DType::i64, Shape()});
              const Value loss = build.add(Op::cross_entropy,
                                           {parameter(build, "x", Shape{4, 3}), labels, valid},
                                           {{"smoothing", 0.0}});
              return mean_of_rows(build, Builder::output(loss, 1));
            }),
            "layer: cross_entropy: the loss depends on parameters through output 1, which has "
            "no gradient");
  // Nor is the part that has none passed over where another output has one.
  EXPECT_EQ(refusal([](Builder& build) {
              const Value norm = build.add(
                  Op::layer_norm,
                  {parameter(build, "x", Shape{4, 1}), parameter(build, "gamma", Shape{1}),
                   parameter(build, "beta", Shape{1})},
                  {{"eps", 1e-6}});
              const Value both =
                  build.add(Op::add, {build.reshape(norm, Shape{4}), Builder::output(norm, 2)});
              return mean_of_rows(build, both);
            }),
            "layer: layer_norm: the loss depends on parameters through output 2, which has no "
            "gradient");
}

TEST(Autodiff, refuses_a_parameter_that_scales) {
  EXPECT_EQ(
      refusal([](Builder& build) {
        const Value x = build.input("x", {DType::f32, Shape{4}});
        return mean_of_rows(build, build.add(Op::scale, {x, parameter(build, "s", Shape())}));
      }),
      "layer: scale: the loss depends on parameters through input 1, which has no gradient");
  EXPECT_EQ(
      refusal([](Builder& build) {
        const Value s = build.input("s", {DType::f32, Shape()});
        return mean_of_rows(build, build.add(Op::scale, {parameter(build, "x", Shape{4}), s}));
      }),
      "");
}

TEST(Autodiff, refuses_an_op_that_has_no_gradient) {
  EXPECT_EQ(
      refusal([](Builder& build) {
        const Value dy = parameter(build, "dy", Shape{1, 1, 1, 1});
        const Value weights = build.input("w", {DType::f32, Shape{1, 1, 4, 4}});
        const Value dx = build.add(Op::convolution_input_gradient, {dy, weights},
                                   {{"stride", std::int64_t{4}},
                                    {"padding", std::int64_t{0}},
                                    {"shape", Shape{1, 1, 4, 4}}});
        return mean_of_rows(build,
                            build.reshape(build.sum_to(dx, Shape{1, 1, 1, 1}), Shape{1}));
      }),
      "layer: convolution_input_gradient: the loss depends on parameters through output 0, "
      "which has no gradient");
}

}  // namespace
}  // namespace halfwatt
