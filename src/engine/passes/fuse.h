#pragma once

#include "engine/graph/graph.h"

namespace halfwatt {

/// The graph with nodes that pass over the same numbers made one where a kernel does both:
///
/// - a residual sum and the norm behind it: add_layer_norm. Where everybody who uses the norm
///   casts it to one narrower dtype, it is stored in that at once (attribute `to`): the value
///   after the cast is the same to the bit.
/// - the gradient of a norm and the sum with the gradient that went around it.
/// - the updates of all parameters that differ in nothing but their shapes: one adamw or sgd of
///   all of them. Those that are rounded stochastically have a random path each, and stay
///   alone.
///
/// Everything else stays as it was.
Graph with_fused(const Graph& graph);

}  // namespace halfwatt
