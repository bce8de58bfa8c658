#pragma once

#include <vector>

#include "engine/graph/graph.h"
#include "engine/plan/plan.h"

namespace halfwatt {

/// The steps of a plan without places, and who waits for whom. Nodes that only name memory
/// (inputs, reads, reshapes) are no steps. `step_of`: by node, its step on its device; -1.
struct Schedule {
  std::vector<std::vector<int>> nodes;  ///< by device, in order: the node of each step
  std::vector<int> step_of;
};

/// The order of the graph, split by device: it was built so that it can be carried out.
Schedule schedule(const Graph& graph, int devices);

/// Whether a node is a step of a plan.
bool is_step(const Node& node);

}  // namespace halfwatt
