#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/attributes.h"
#include "engine/graph/op.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// An output of a node.
struct Value {
  int node = -1;
  int output = 0;
  auto operator<=>(const Value&) const = default;
};

/// Which part of a step a node belongs to.
enum class Phase : std::uint8_t { forward, backward, update };

/// One computation. Its inputs are outputs of nodes before it, so a graph has no circle by its
/// construction.
struct Node {
  Op op = Op::input;
  std::vector<Value> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;  ///< none of `write`, else 1 or more
  std::string name;  ///< path of its layer, "blocks.0.attn.qkv"; kept by every pass
  Phase phase = Phase::forward;
  int device = 0;  ///< index into the targets of the compilation
};

/// What a state is for.
enum class StateRole : std::uint8_t {
  parameter,
  copy,         ///< of a parameter, in the dtype that is computed with
  moment,       ///< of the optimizer
  accumulator,  ///< of gradients over micro-batches
  scaler,
  counter,
  amax,  ///< of an operand of fp8: the history of its largest magnitude, and its scale
  statistics,
  average,  ///< EMA of a parameter
};

/// How the weights of a linear layer, [features, width], may lie in memory: for `columns`
/// features at a time `steps` numbers of each, then the next ones, [features / columns, width /
/// steps, columns, steps]; a product reads such panels in order. No columns: row by row.
struct Panels {
  std::int64_t columns = 0;
  std::int64_t steps = 1;
  bool operator==(const Panels&) const = default;
};

/// A named buffer that outlives a step, and belongs to no graph: any number of them bind it.
struct StateSpec {
  std::string name;  ///< of a parameter timm's key: "blocks.0.attn.qkv.weight"
  StateRole role = StateRole::parameter;
  TensorType type;
  std::string of;  ///< of a copy, moment, accumulator, amax or average: its parameter's name
  double initial = 0;  ///< in every element of a new one, unless it is a parameter
  Panels panels = {};  ///< of a copy that only a linear node reads
};

/// A result that the caller of a run wants to see.
struct GraphResult {
  std::string name;
  Value value;
};

/// A computation over states and inputs, in an order in which it can be carried out. Knows no
/// kernel and no device. Built by a Builder; what is legal is written in ops/verify.cpp.
class Graph {
 public:
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  Node& node(int id) { return nodes_[static_cast<std::size_t>(id)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const TensorType& type(Value value) const;

  /// Appends `node` as it is and returns its id.
  int append(Node node);

  const std::vector<StateSpec>& states() const { return states_; }
  /// Adds a state whose name is new, or is there already as the same.
  void declare(StateSpec state);
  const StateSpec* state(std::string_view name) const;
  /// What reads that state; nullopt if nobody does.
  std::optional<Value> reader(std::string_view state) const;

  const std::vector<GraphResult>& results() const { return results_; }
  void set_result(std::string name, Value value);
  std::optional<Value> result(std::string_view name) const;

 private:
  std::vector<Node> nodes_;
  std::vector<StateSpec> states_;
  std::map<std::string, int, std::less<>> readers_;  ///< by state: the node
  std::vector<GraphResult> results_;
};

std::string_view text(Phase phase);
std::string_view text(StateRole role);

/// The graph, a line for each state, node and result: the form that goldens have and that
/// `--print-after` shows. `op_name` is ops/'s.
std::string text(const Graph& graph, std::string_view (*op_name)(Op));

}  // namespace halfwatt
