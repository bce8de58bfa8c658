#pragma once

#include "engine/graph/graph.h"

namespace halfwatt {

/// The graph with nodes that pass over the same numbers made one where a kernel does both:
///
/// - a residual sum and the norm behind it: add_layer_norm. Where everybody who uses the norm
///   casts it to one narrower dtype, it is stored in that at once (attribute `to`): the value
///   after the cast is the same to the bit.
/// - the gradient of a norm and the sum with the gradient that went around it.
/// - a cast that widens a gradient of 16 bits for a norm's gradient, or for the check and the
///   update of parameters: they widen it as they read it. A result `gradient:NAME` is of 16
///   bits then.
/// - the updates of all parameters that differ in nothing but their shapes: one adamw or sgd of
///   all of them, for each format of gradients. Those that are rounded stochastically have a
///   random path each, and stay alone.
///
/// Everything else stays as it was.
Graph with_fused(const Graph& graph);

}  // namespace halfwatt
