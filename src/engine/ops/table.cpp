#include <array>
#include <numeric>

#include "base/check.h"
#include "engine/ops/rows.h"

namespace halfwatt {
namespace {

// In the order of the enumeration.
constexpr std::array<const OpDef*, kOps> kTable = {
    &kInput,
    &kConstant,
    &kRead,
    &kWrite,
    &kMatmul,
    &kConvolution,
    &kConvolutionInputGradient,
    &kConvolutionWeightGradient,
    &kAttention,
    &kAttentionGradient,
    &kLayerNorm,
    &kLayerNormGradient,
    &kCrossEntropy,
    &kCrossEntropyGradient,
    &kBinaryCrossEntropy,
    &kBinaryCrossEntropyGradient,
    &kMean,
    &kSumTo,
    &kCast,
    &kNormalise,
    &kAdd,
    &kScale,
    &kGelu,
    &kGeluGradient,
    &kDropout,
    &kDropPath,
    &kReshape,
    &kExpand,
    &kSlice,
    &kSliceGradient,
    &kConcatenate,
    &kTranspose,
    &kTransfer,
    &kCheckGradients,
    &kGradientFactor,
    &kLearningRate,
    &kAdamw,
    &kSgd,
    &kEma,
    &kAdvance,
    &kUpdateScale,
    &kObserveAmax,
    &kRescale,
    &kAddLayerNorm,
    &kLinear,
};

}  // namespace

const OpDef& definition(Op op) {
  const OpDef& row = *kTable[static_cast<std::size_t>(op)];
  HALFWATT_CHECK(row.op == op, "the table of ops is in the order of the enumeration");
  return row;
}

bool may_overwrite(Op op, int output, int input) {
  switch (definition(op).in_place) {
    case InPlace::any:
      return output == 0;
    case InPlace::matching:
      return output == input;
    case InPlace::never:
      break;
  }
  return false;
}

std::vector<TensorType> input_types(const Graph& graph, const Node& node) {
  std::vector<TensorType> types;
  types.reserve(node.inputs.size());
  for (const Value input : node.inputs) {
    types.push_back(graph.type(input));
  }
  return types;
}

Cost cost(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  const std::vector<TensorType> inputs = input_types(graph, node);
  const auto sum = [](const std::vector<TensorType>& types) {
    return std::accumulate(types.begin(), types.end(), 0.0, [](double bytes, const auto& each) {
      return bytes + static_cast<double>(each.bytes());
    });
  };
  const OpDef& row = definition(node.op);
  if (row.numeric == NumericClass::source) {
    return {};
  }
  return {row.flops ? row.flops(node, inputs) : 0, sum(inputs) + sum(node.outputs)};
}

}  // namespace halfwatt
