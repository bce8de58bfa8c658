#pragma once

#include <span>

#include "engine/graph/graph.h"
#include "engine/plan/target.h"

namespace halfwatt {

/// Products with weights that are loaded and never written become linear nodes on targets that
/// like such weights in panels, with the GELU behind them where nobody else sees what goes into
/// it. Their weights are copies that lie in panels; what nobody reads any more is left out.
Graph with_panels(const Graph& graph, std::span<const Target> targets);

}  // namespace halfwatt
