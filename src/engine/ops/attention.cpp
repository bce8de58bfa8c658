#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// qkv: [B, N, 3D], of each token the queries, keys and values of all heads, as timm packs them.
// attribute `heads`. Scores are scaled by 1 / sqrt(D / heads). Outputs: [B, N, D] and, wide,
// the logarithm of the sum of exponentials of each row of scores, [B, heads, N], from which the
// backward computes them again. attribute `math_a`: tf32 where a device may round the operands
// of its products to it; one that has no such products computes them as they are.
Result<Types> outputs(const Node& node, Inputs inputs) {
  const TensorType& qkv = inputs[0];
  const std::int64_t heads = node.attributes.integer("heads");
  if (!is_float(qkv.dtype)) {
    return not_floats(inputs);
  }
  if (qkv.shape.rank() != 3 || heads < 1 || qkv.shape[2] % (3 * heads) != 0) {
    return bad_input(
        fmt::format("qkv of {}, needs BxNx3D with D a multiple of {} heads", text(qkv), heads));
  }
  const std::int64_t batch = qkv.shape[0];
  const std::int64_t tokens = qkv.shape[1];
  return Types{{qkv.dtype, Shape{batch, tokens, qkv.shape[2] / 3}},
               {wide(qkv.dtype), Shape{batch, heads, tokens}}};
}

// inputs: gradient of the output, qkv, output, logarithms.
Result<Types> gradient_outputs(const Node& node, Inputs inputs) {
  if (!(inputs[0] == inputs[2])) {
    return differ("the output and its gradient", inputs[2], inputs[0]);
  }
  const auto forward = outputs(node, inputs.subspan(1, 1));
  if (!forward) {
    return forward.error();
  }
  if (!((*forward)[0] == inputs[2] && (*forward)[1] == inputs[3])) {
    return bad_input(fmt::format("an output and logarithms of {} and {}, needs {} and {}",
                                 text(inputs[2]), text(inputs[3]), text((*forward)[0]),
                                 text((*forward)[1])));
  }
  return Types{inputs[1]};
}

InputGradients gradient(Builder& build, const GradientCall& call) {
  const Value out{call.id, 0};
  return {build.add(Op::attention_gradient,
                    {*call.of_outputs[0], call.node.inputs[0], out, Builder::output(out, 1)},
                    call.node.attributes)};
}

// Of one product of N x N with N x D, over all images; forward has two, backward five.
double product(const TensorType& qkv) {
  const auto extent = [&](std::size_t at) { return static_cast<double>(qkv.shape[at]); };
  return 2 * extent(0) * extent(1) * extent(1) * extent(2) / 3;
}

double flops(const Node&, Inputs inputs) { return 2 * product(inputs[0]); }
double gradient_flops(const Node&, Inputs inputs) { return 5 * product(inputs[1]); }

}  // namespace

const OpDef kAttention{Op::attention, "attention", NumericClass::gemm, 1, 1, outputs,
                       gradient,      flops};
const OpDef kAttentionGradient{Op::attention_gradient,
                               "attention_gradient",
                               NumericClass::gemm,
                               4,
                               4,
                               gradient_outputs,
                               nullptr,
                               gradient_flops};

}  // namespace halfwatt
