#pragma once

#include "base/result.h"
#include "engine/graph/graph.h"

namespace halfwatt {

/// Whether `graph` is legal; verify.cpp is the list of the rules. Errors: the first rule that
/// is broken, with the node that breaks it.
Result<void> verify(const Graph& graph);

}  // namespace halfwatt
