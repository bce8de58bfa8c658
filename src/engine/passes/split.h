#pragma once

#include <span>
#include <vector>

#include "engine/passes/placement.h"

namespace halfwatt {

/// Whether a node is where those are that use it or that it is made of, and not put anywhere
/// itself: inputs, constants, reads, reshapes, casts.
bool goes_along(const Node& node);

/// Where the nodes of a graph are to be.
struct Devices {
  std::vector<int> of_nodes;  ///< nodes that go along: ignored
  Homes homes;
  int shared = 0;  ///< home of states that belong to no parameter
  std::span<const Target> targets;
};

/// The graph with its nodes on their devices and a transfer for each value and device that it
/// is needed on too. A cast is before the transfer where it narrows, behind it where it widens.
Graph split(const Graph& graph, const Devices& devices);

}  // namespace halfwatt
