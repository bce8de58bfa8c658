#pragma once

#include <cstdint>

#include "engine/graph/graph.h"

namespace halfwatt {

/// A legal graph that makes no sense, the same for the same `seed`: every op but transfers,
/// over tensors of a few hundred elements. Values are used often, once and never; states are
/// read and not written, written and not read, and both, with values that have to do with them
/// and values that have not, some with one value that another state gets too; reshapes come in
/// chains, of values, of states and of results.
Graph random_graph(std::uint64_t seed);

/// `graph` with its nodes dealt out to `devices` devices, a state staying on one, and with the
/// transfers that this needs.
Graph dealt_out(const Graph& graph, int devices, std::uint64_t seed);

}  // namespace halfwatt
