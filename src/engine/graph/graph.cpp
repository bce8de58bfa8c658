#include "engine/graph/graph.h"

#include <algorithm>

#include "base/check.h"

namespace halfwatt {

const TensorType& Graph::type(Value value) const {
  const Node& from = node(value.node);
  return from.outputs[static_cast<std::size_t>(value.output)];
}

int Graph::append(Node node) {
  if (node.op == Op::read) {
    readers_.emplace(node.attributes.word("state"), size());
  }
  nodes_.push_back(std::move(node));
  return size() - 1;
}

void Graph::declare(StateSpec state) {
  if (const StateSpec* known = this->state(state.name)) {
    HALFWATT_CHECK(known->type == state.type && known->role == state.role,
                   "two states of one name");
    return;
  }
  states_.push_back(std::move(state));
}

const StateSpec* Graph::state(std::string_view name) const {
  const auto found = std::find_if(states_.begin(), states_.end(),
                                  [&](const StateSpec& each) { return each.name == name; });
  return found == states_.end() ? nullptr : &*found;
}

std::optional<Value> Graph::reader(std::string_view state) const {
  const auto found = readers_.find(state);
  return found == readers_.end() ? std::nullopt : std::optional(Value{found->second, 0});
}

void Graph::set_result(std::string name, Value value) {
  for (GraphResult& each : results_) {
    if (each.name == name) {
      each.value = value;
      return;
    }
  }
  results_.push_back({std::move(name), value});
}

std::optional<Value> Graph::result(std::string_view name) const {
  for (const GraphResult& each : results_) {
    if (each.name == name) {
      return each.value;
    }
  }
  return std::nullopt;
}

}  // namespace halfwatt
