#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// logits: [B, C]; labels: i64 [B] for cross entropy, the dtype of the logits [B, C] for the
// binary one; valid: i64 scalar, how many samples count, from the first. attribute `smoothing`
// of cross entropy. Outputs: the mean over valid samples, and the loss of each, both in the
// dtype of the logits; sums are wide. A sample that does not count has loss 0.
Result<Types> outputs_for(const TensorType& labels, Inputs inputs) {
  const TensorType& logits = inputs[0];
  if (!is_float(logits.dtype) || logits.shape.rank() != 2) {
    return bad_input(
        fmt::format("logits of {}, needs floats of samples by classes", text(logits)));
  }
  if (!(inputs[1] == labels)) {
    return bad_input(fmt::format("labels of {}, needs {}", text(inputs[1]), text(labels)));
  }
  if (!(inputs[2] == TensorType{DType::i64, Shape()})) {
    return bad_input(
        fmt::format("a count of valid samples of {}, needs an i64", text(inputs[2])));
  }
  return Types{{logits.dtype, Shape()}, {logits.dtype, Shape{logits.shape[0]}}};
}

Result<Types> cross_entropy_outputs(const Node&, Inputs inputs) {
  return outputs_for({DType::i64, Shape{inputs[0].shape.rows()}}, inputs);
}

Result<Types> binary_outputs(const Node&, Inputs inputs) {
  return outputs_for(inputs[0], inputs);
}

// inputs: gradient of the mean, a scalar; logits, labels, valid.
template <Result<Types> (*kForward)(const Node&, Inputs)>
Result<Types> gradient_outputs(const Node& node, Inputs inputs) {
  if (!is_float(inputs[0].dtype) || inputs[0].shape.elements() != 1) {
    return bad_input(fmt::format("a gradient of {}, needs a scalar", text(inputs[0])));
  }
  if (const auto forward = kForward(node, inputs.subspan(1)); !forward) {
    return forward.error();
  }
  return Types{inputs[1]};
}

template <Op kOp>
InputGradients gradient(Builder& build, const GradientCall& call) {
  InputGradients gradients(3);
  if (call.wanted[0] && call.of_outputs[0]) {
    gradients[0] = build.add(
        kOp,
        {*call.of_outputs[0], call.node.inputs[0], call.node.inputs[1], call.node.inputs[2]},
        call.node.attributes);
  }
  return gradients;
}

}  // namespace

const OpDef kCrossEntropy{Op::cross_entropy,
                          "cross_entropy",
                          NumericClass::reduce,
                          3,
                          3,
                          cross_entropy_outputs,
                          gradient<Op::cross_entropy_gradient>};
const OpDef kCrossEntropyGradient{Op::cross_entropy_gradient,
                                  "cross_entropy_gradient",
                                  NumericClass::reduce,
                                  4,
                                  4,
                                  gradient_outputs<cross_entropy_outputs>};
const OpDef kBinaryCrossEntropy{Op::binary_cross_entropy,
                                "binary_cross_entropy",
                                NumericClass::reduce,
                                3,
                                3,
                                binary_outputs,
                                gradient<Op::binary_cross_entropy_gradient>};
const OpDef kBinaryCrossEntropyGradient{Op::binary_cross_entropy_gradient,
                                        "binary_cross_entropy_gradient",
                                        NumericClass::reduce,
                                        4,
                                        4,
                                        gradient_outputs<binary_outputs>};

}  // namespace halfwatt
