#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"

namespace halfwatt {

class Builder;

/// What a node costs however it is computed. FLOPs are those of products alone, a multiply-add
/// being two, as the field counts them; bytes are every input read and every output written
/// once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

/// A node whose gradient is asked for, in the graph that the gradient is appended to.
struct GradientCall {
  const Node& node;  ///< a copy of it
  int id;            ///< its number, so that its outputs can be used
  /// By output of the node; nullopt where nothing depends on it.
  std::span<const std::optional<Value>> of_outputs;
  /// By input of the node: whether anybody wants its gradient.
  std::span<const bool> wanted;
};

/// By input of the node; nullopt where there is none, or nobody wants it.
using InputGradients = std::vector<std::optional<Value>>;

/// Which outputs may lie where an input of the same type does.
enum class InPlace {
  never,
  any,      ///< element by element: the first output over any input
  matching  ///< each output over the input of its number
};

/// All that is to be known of an op: one row of the table.
struct OpDef {
  Op op;
  std::string_view name;
  NumericClass numeric;
  std::size_t fewest_inputs;
  std::size_t most_inputs;
  /// Dtype and shape of the outputs. Errors: inputs or attributes that do not fit; the message
  /// says what was found and what was needed.
  Result<std::vector<TensorType>> (*outputs)(const Node& node,
                                             std::span<const TensorType> inputs);
  /// Appends what computes the gradients of the inputs; nullptr if the op has none.
  InputGradients (*gradient)(Builder& build, const GradientCall& call) = nullptr;
  /// FLOPs; nullptr if it is no product.
  double (*flops)(const Node& node, std::span<const TensorType> inputs) = nullptr;
  InPlace in_place = InPlace::never;
};

/// Whether the kernel of `op` may write its output `output` over its input `input`, if both are
/// of one type.
bool may_overwrite(Op op, int output, int input);

inline constexpr std::size_t kAnyNumber = 1U << 20;

/// The row of `op`.
const OpDef& definition(Op op);
inline std::string_view name_of(Op op) { return definition(op).name; }

/// Types of the inputs of `node`, which is in `graph` or about to be.
std::vector<TensorType> input_types(const Graph& graph, const Node& node);

/// What node `id` costs.
Cost cost(const Graph& graph, int id);

/// The text form of graph/print.cpp.
inline std::string text(const Graph& graph) { return text(graph, name_of); }

}  // namespace halfwatt
