#pragma once

#include <span>
#include <string>

#include "engine/graph/graph.h"
#include "engine/passes/precision.h"

namespace halfwatt {

/// The forward graph with the gradients of its result `loss` behind it: one result
/// `gradient:NAME` for each parameter, in the precision's dtype of gradients (fuse leaves it as
/// narrow as products gave it). Where the precision scales the loss, the state kLossScale is
/// read, and gradients are that much larger. `micro_batches`: gradients are divided by how many
/// of them make a step. `frozen`: patterns of parameters that do not learn; these have no
/// gradient, and nothing is computed for one. Throws Failure where the loss depends on
/// parameters through an input or output of an op that has no gradient.
Graph with_gradients(const Graph& graph,
                     const Precision& precision,
                     int micro_batches,
                     std::span<const std::string> frozen = {});

inline constexpr std::string_view kLossScale = "scaler.scale";
inline constexpr std::string_view kGradient = "gradient:";

/// The state of the loss scale: f32, 65536 at first.
StateSpec loss_scale_state();

}  // namespace halfwatt
