#include <array>

#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// x: [..., D], gamma and beta: [D]. attribute `eps`. Outputs: y as x, and, wide, mean and
// 1 / sqrt(variance + eps) of every row.
Result<Types> outputs(const Node&, Inputs inputs) {
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  const TensorType& x = inputs[0];
  for (const TensorType& each : inputs.subspan(1, 2)) {
    if (!(each.shape == Shape{x.shape.last(0)})) {
      return bad_input(fmt::format("a weight of {}, needs {}", text(each), x.shape.last(0)));
    }
  }
  const TensorType row{wide(x.dtype), Shape{x.shape.rows()}};
  return Types{x, row, row};
}

// inputs: dy, which may be narrower than x, x, gamma, mean, rstd and, if fuse put it in, a
// gradient that is added to dx. Outputs: dx, dgamma, dbeta.
Result<Types> gradient_outputs(const Node& node, Inputs inputs) {
  if (inputs.size() == 6 && !(inputs[5] == inputs[1])) {
    return differ("the input and the gradient that is added", inputs[1], inputs[5]);
  }
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  const bool fits = inputs[0].dtype == inputs[1].dtype ||
                    bytes_of(inputs[0].dtype) < bytes_of(inputs[1].dtype);
  if (!(inputs[0].shape == inputs[1].shape) || !fits) {
    return differ("the input and the gradient of the output", inputs[1], inputs[0]);
  }
  const std::array<TensorType, 3> x = {inputs[1], inputs[2], inputs[2]};
  const auto forward = outputs(node, x);
  if (!forward) {
    return forward.error();
  }
  const TensorType& row = (*forward)[1];
  if (!(inputs[3] == row && inputs[4] == row)) {
    return bad_input(fmt::format("statistics of {} and {}, needs {}", text(inputs[3]),
                                 text(inputs[4]), text(row)));
  }
  return Types{inputs[1], inputs[2], inputs[2]};
}

InputGradients gradient(Builder& build, const GradientCall& call) {
  const Value y{call.id, 0};
  const Value dx = build.add(Op::layer_norm_gradient,
                             {*call.of_outputs[0], call.node.inputs[0], call.node.inputs[1],
                              Builder::output(y, 1), Builder::output(y, 2)});
  return {dx, Builder::output(dx, 1), Builder::output(dx, 2)};
}

// inputs: x, residual, gamma, beta. Outputs: their sum, and what layer_norm gives of it; y in
// the dtype of attribute `to`, if there is one.
Result<Types> fused_outputs(const Node& node, Inputs inputs) {
  const auto dtype = promoted(inputs[0].dtype, inputs[1].dtype);
  if (!dtype || !(inputs[0].shape == inputs[1].shape)) {
    return differ("the terms", inputs[0], inputs[1]);
  }
  const TensorType sum{*dtype, inputs[0].shape};
  const std::array<TensorType, 3> normed = {sum, inputs[2], inputs[3]};
  auto rest = outputs(node, normed);
  if (!rest) {
    return rest.error();
  }
  if (node.attributes.has("to")) {
    (*rest)[0].dtype = node.attributes.dtype("to");
  }
  rest->insert(rest->begin(), sum);
  return rest;
}

}  // namespace

const OpDef kLayerNorm{Op::layer_norm, "layer_norm", NumericClass::reduce, 3, 3,
                       outputs,        gradient};
const OpDef kLayerNormGradient{
    Op::layer_norm_gradient, "layer_norm_gradient", NumericClass::reduce, 5, 6,
    gradient_outputs};
const OpDef kAddLayerNorm{Op::add_layer_norm, "add_layer_norm", NumericClass::reduce, 4, 4,
                          fused_outputs};

}  // namespace halfwatt
