#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// x / 2 (1 + erf(x / sqrt(2))): the exact form, not the one with tanh.
Result<Types> outputs(const Node&, Inputs inputs) {
  return is_float(inputs[0].dtype) ? Result<Types>(Types{inputs[0]}) : not_floats(inputs);
}

// inputs: dy, x.
Result<Types> gradient_outputs(const Node&, Inputs inputs) {
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  if (!(inputs[0] == inputs[1])) {
    return differ("the input and the gradient of the output", inputs[1], inputs[0]);
  }
  return Types{inputs[1]};
}

InputGradients gradient(Builder& build, const GradientCall& call) {
  return {build.add(Op::gelu_gradient, {*call.of_outputs[0], call.node.inputs[0]})};
}

}  // namespace

const OpDef kGelu{Op::gelu, "gelu",      NumericClass::pointwise, 1, 1, outputs, gradient,
                  nullptr,  InPlace::any};
const OpDef kGeluGradient{Op::gelu_gradient,
                          "gelu_gradient",
                          NumericClass::pointwise,
                          2,
                          2,
                          gradient_outputs,
                          nullptr,
                          nullptr,
                          InPlace::any};

}  // namespace halfwatt
