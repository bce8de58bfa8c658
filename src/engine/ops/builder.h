#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/ops/op_def.h"

namespace halfwatt {

/// Appends nodes to a graph, their output types worked out by the ops' own rules. Everything
/// here throws Failure on inputs that do not fit, with the line that says why: that is a
/// mistake of the one who builds, not of a user.
class Builder {
 public:
  /// `graph` outlives it.
  explicit Builder(Graph& graph) : graph_(&graph) {}

  Graph& graph() { return *graph_; }
  const TensorType& type(Value value) const { return graph_->type(value); }

  /// What nodes from now on are named, and the phase they are of.
  void set_name(std::string name) { name_ = std::move(name); }
  const std::string& name() const { return name_; }
  void set_phase(Phase phase) { phase_ = phase; }
  void set_device(int device) { device_ = device; }

  /// Any node; returns its first output.
  Value add(Op op, std::vector<Value> inputs, Attributes attributes = {});
  /// Another output of the node that `value` is of.
  static Value output(Value value, int at) { return {value.node, at}; }

  Value input(std::string name, TensorType type);
  Value constant(double value, TensorType type);
  /// Declares the state where it is new, and reads it where nobody does yet.
  Value read(const StateSpec& state);
  void write(const std::string& state, Value value);

  /// The value itself where it has that dtype already.
  Value cast(Value value, DType dtype);
  /// `x: [..., K]` times `weight: [N, K]` transposed, plus `bias: [N]`.
  Value linear(Value x, Value weight, std::optional<Value> bias);
  Value reshape(Value value, Shape shape);
  /// Sums over what `shape` was spread to; the value itself where it has that shape.
  Value sum_to(Value value, Shape shape);

 private:
  Graph* graph_;
  std::string name_;
  Phase phase_ = Phase::forward;
  int device_ = 0;
};

}  // namespace halfwatt
