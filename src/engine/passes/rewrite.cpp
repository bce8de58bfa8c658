#include "engine/passes/rewrite.h"

#include "base/check.h"

namespace halfwatt {

Rewrite::Rewrite(const Graph& from)
    : from_(&from), build_(graph_), first_(static_cast<std::size_t>(from.size())) {}

Value Rewrite::now(Value old) const {
  const Value first = first_[static_cast<std::size_t>(old.node)];
  HALFWATT_CHECK(first.node >= 0, "a value of the old graph that has no place in the new one");
  return {first.node, first.output + old.output};
}

std::vector<Value> Rewrite::now(const std::vector<Value>& old) const {
  std::vector<Value> values;
  values.reserve(old.size());
  for (const Value each : old) {
    values.push_back(now(each));
  }
  return values;
}

void Rewrite::map(int id, Value value) { first_[static_cast<std::size_t>(id)] = value; }

void Rewrite::follow(const Node& node) {
  build_.set_name(node.name);
  build_.set_phase(node.phase);
  build_.set_device(node.device);
}

Value Rewrite::copy(int id) {
  const Node& node = from_->node(id);
  follow(node);
  if (node.op == Op::read || node.op == Op::write) {
    graph_.declare(*from_->state(node.attributes.word("state")));
  }
  const Value value = build_.add(node.op, now(node.inputs), node.attributes);
  map(id, value);
  return value;
}

Graph Rewrite::finish() {
  for (const GraphResult& result : from_->results()) {
    graph_.set_result(result.name, now(result.value));
  }
  return std::move(graph_);
}

Graph without_dead_nodes(const Graph& graph) {
  std::vector<bool> alive(static_cast<std::size_t>(graph.size()));
  const auto mark = [&](Value value) { alive[static_cast<std::size_t>(value.node)] = true; };
  for (const GraphResult& result : graph.results()) {
    mark(result.value);
  }
  for (int id = graph.size() - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    if (node.op == Op::write || alive[static_cast<std::size_t>(id)]) {
      alive[static_cast<std::size_t>(id)] = true;
      for (const Value input : node.inputs) {
        mark(input);
      }
    }
  }
  Rewrite rewrite(graph);
  for (const StateSpec& state : graph.states()) {
    rewrite.graph().declare(state);
  }
  for (int id = 0; id < graph.size(); ++id) {
    if (alive[static_cast<std::size_t>(id)]) {
      rewrite.copy(id);
    }
  }
  return rewrite.finish();
}

}  // namespace halfwatt
