#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// inputs: x, whose outermost extent is that of the samples, and the random key, i64 3: seed,
// attempt, number of the first sample among all of this attempt. attributes `rate` and `path`,
// which tells apart ops of one model. Kept elements are divided by 1 - rate. No mask is stored:
// the gradient draws the same numbers again.
Result<Types> outputs(const Node& node, Inputs inputs) {
  if (!is_float(inputs[0].dtype) || inputs[0].shape.rank() < 1) {
    return bad_input(fmt::format("{}, needs floats of samples", text(inputs[0])));
  }
  if (!(inputs[1] == TensorType{DType::i64, Shape{3}})) {
    return bad_input(fmt::format("a random key of {}, needs i64 3", text(inputs[1])));
  }
  const double rate = node.attributes.number("rate");
  if (!(rate >= 0 && rate < 1)) {
    return bad_input(fmt::format("a rate of {}, needs 0 to below 1", rate));
  }
  return Types{inputs[0]};
}

InputGradients gradient(Builder& build, const GradientCall& call) {
  return {
      build.add(call.node.op, {*call.of_outputs[0], call.node.inputs[1]}, call.node.attributes),
      std::nullopt};
}

}  // namespace

// Elements one by one.
const OpDef kDropout{Op::dropout, "dropout",   NumericClass::pointwise, 2, 2, outputs, gradient,
                     nullptr,     InPlace::any};
// A sample as a whole.
const OpDef kDropPath{
    Op::drop_path, "drop_path", NumericClass::pointwise, 2, 2, outputs, gradient,
    nullptr,       InPlace::any};

}  // namespace halfwatt
