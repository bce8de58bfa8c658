#pragma once

#include <vector>

#include "engine/ops/builder.h"

namespace halfwatt {

/// A graph made anew from another, node by node in its order: what most passes do. Values of
/// the old graph are mapped to values of the new one.
class Rewrite {
 public:
  /// `from` outlives it.
  explicit Rewrite(const Graph& from);

  Builder& build() { return build_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  /// Where `old` is now; it must have been mapped.
  Value now(Value old) const;
  std::vector<Value> now(const std::vector<Value>& old) const;
  /// Says that the outputs of old node `id` are those of `value`'s node from `value` on.
  void map(int id, Value value);
  /// Name, phase and device of nodes from now on as `node` has them.
  void follow(const Node& node);
  /// The old node as it was, with its inputs mapped and its output types worked out again.
  Value copy(int id);
  /// The new graph, with the old one's results.
  Graph finish();

 private:
  const Graph* from_;
  Graph graph_;
  Builder build_;
  std::vector<Value> first_;  ///< by old node: its first output
};

/// The graph without nodes that neither a result nor a write depends on.
Graph without_dead_nodes(const Graph& graph);

}  // namespace halfwatt
