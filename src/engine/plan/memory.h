#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/plan/plan.h"

namespace halfwatt {

/// Where every value and every workspace lies.
struct Memory {
  std::map<Value, Place> values;
  std::vector<Place> workspaces;     ///< by node
  std::vector<std::size_t> arenas;   ///< by device: bytes
  std::vector<std::size_t> numbers;  ///< by device: bytes of these that small results have
  /// By node: a write whose value lies in its state already, so that nothing is to be done.
  std::vector<bool> is_in_place;
};

/// Places the values of `graph`, whose inputs and states are numbered as in `plan` to come.
/// `workspaces`: bytes by node. Values live from the node that makes them to the last that uses
/// them, results to the end. A reshape lies where its input does; a value that is written to a
/// state lies in the state if nobody needs what was there; an output lies where an input does
/// that is of one type and used for the last time, if its op allows that. Small results lie at
/// the arena's begin from the first step to the last, and never in a state. The rest is packed,
/// the largest first, each as low as it fits beside those that live with it.
Memory place(const Graph& graph, const std::vector<std::size_t>& workspaces, int devices);

/// One buffer of an arena: alive from step `first` to `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

/// Offsets at which no two buffers overlap that are alive at once, and the size of the arena.
struct Packing {
  std::vector<std::size_t> offsets;
  std::size_t size = 0;
};
Packing pack(const std::vector<Lifetime>& buffers);

}  // namespace halfwatt
