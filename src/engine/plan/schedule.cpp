#include "engine/plan/schedule.h"

namespace halfwatt {

bool is_step(const Node& node) {
  return node.op != Op::input && node.op != Op::read && node.op != Op::reshape;
}

Schedule schedule(const Graph& graph, int devices) {
  Schedule order{std::vector<std::vector<int>>(static_cast<std::size_t>(devices)),
                 std::vector<int>(static_cast<std::size_t>(graph.size()), -1)};
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (is_step(node)) {
      auto& steps = order.nodes[static_cast<std::size_t>(node.device)];
      order.step_of[static_cast<std::size_t>(id)] = static_cast<int>(steps.size());
      steps.push_back(id);
    }
  }
  return order;
}

}  // namespace halfwatt
