#include <fmt/format.h>

#include "engine/graph/graph.h"

namespace halfwatt {
namespace {

std::string value_text(const Graph& graph, Value value) {
  return graph.node(value.node).outputs.size() == 1
             ? fmt::format("%{}", value.node)
             : fmt::format("%{}.{}", value.node, value.output);
}

std::string node_text(const Graph& graph, int id, std::string_view (*op_name)(Op)) {
  const Node& node = graph.node(id);
  std::string line = node.outputs.empty() ? "  " : fmt::format("  %{} = ", id);
  line += op_name(node.op);
  line += '(';
  for (std::size_t at = 0; at < node.inputs.size(); ++at) {
    line += fmt::format("{}{}", at == 0 ? "" : ", ", value_text(graph, node.inputs[at]));
  }
  line += ')';
  if (!node.attributes.entries().empty()) {
    line += fmt::format(" [{}]", text(node.attributes));
  }
  for (std::size_t at = 0; at < node.outputs.size(); ++at) {
    line += fmt::format("{} {}", at == 0 ? " :" : ",", text(node.outputs[at]));
  }
  if (node.device != 0) {
    line += fmt::format(" @{}", node.device);
  }
  return node.name.empty() ? line : fmt::format("{}  # {}", line, node.name);
}

}  // namespace

std::string_view text(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      break;
  }
  return "update";
}

std::string_view text(StateRole role) {
  switch (role) {
    case StateRole::parameter:
      return "parameter";
    case StateRole::copy:
      return "copy";
    case StateRole::moment:
      return "moment";
    case StateRole::accumulator:
      return "accumulator";
    case StateRole::scaler:
      return "scaler";
    case StateRole::counter:
      return "counter";
    case StateRole::amax:
      return "amax";
    case StateRole::statistics:
      return "statistics";
    case StateRole::average:
      break;
  }
  return "average";
}

std::string text(const Graph& graph, std::string_view (*op_name)(Op)) {
  std::string all;
  for (const StateSpec& state : graph.states()) {
    all += fmt::format("state {} : {} {}", state.name, text(state.role), text(state.type));
    all += state.panels.columns == 0
               ? "\n"
               : fmt::format(" in panels of {}x{}\n", state.panels.columns, state.panels.steps);
  }
  Phase phase = Phase::forward;
  for (int id = 0; id < graph.size(); ++id) {
    if (id == 0 || graph.node(id).phase != phase) {
      phase = graph.node(id).phase;
      all += fmt::format("{}:\n", text(phase));
    }
    all += node_text(graph, id, op_name) + '\n';
  }
  for (const GraphResult& result : graph.results()) {
    all += fmt::format("result {} = {}\n", result.name, value_text(graph, result.value));
  }
  return all;
}

}  // namespace halfwatt
