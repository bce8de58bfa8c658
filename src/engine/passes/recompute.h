#pragma once

#include "engine/graph/graph.h"

namespace halfwatt {

/// A graph with gradients whose blocks ("blocks.N" of node names) keep nothing for their
/// backward nodes but what they were given: what these need of the forward is computed once
/// more, right before the first of them that needs it (Chen et al. 2016). The same nodes on the
/// same inputs, random ops with the same keys: equal to the bit. What the backward does not
/// need, the last product of a block say, is not computed twice.
Graph with_recompute(const Graph& graph);

}  // namespace halfwatt
