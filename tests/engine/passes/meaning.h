#pragma once

#include <map>
#include <string>

#include "engine/graph/graph.h"

namespace halfwatt {

/// What every result and every written state of a graph is computed from and how, down to the
/// inputs: where two graphs have one text, the values are equal to the bit. Numbers and places
/// of nodes do not matter, nor do transfers.
std::map<std::string, std::string> meanings(const Graph& graph);

}  // namespace halfwatt
