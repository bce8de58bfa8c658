#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// attributes: `to`, a dtype. Rounds to nearest even.
Result<Types> outputs(const Node& node, Inputs inputs) {
  const DType to = node.attributes.dtype("to");
  if (!is_float(inputs[0].dtype) || !is_float(to)) {
    return bad_input(
        fmt::format("from {} to {}, needs floats", text(inputs[0].dtype), text(to)));
  }
  return Types{{to, inputs[0].shape}};
}

InputGradients gradient(Builder& build, const GradientCall& call) {
  const DType from = build.type(call.node.inputs[0]).dtype;
  return {build.cast(*call.of_outputs[0], from)};
}

}  // namespace

const OpDef kCast{Op::cast, "cast", NumericClass::pointwise, 1, 1, outputs, gradient};

}  // namespace halfwatt
