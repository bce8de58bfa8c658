#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/graph/graph.h"

// What all backends ask of shapes, and which nodes none of them computes.

namespace halfwatt {

/// A tensor [outer, inner] that is spread to [outer, times, inner].
struct Spread {
  std::int64_t outer = 1, times = 1, inner = 1;
};
/// How `part` is spread to `whole`; nullopt if it is so along extents that do not lie together.
std::optional<Spread> spread(const Shape& part, const Shape& whole);

/// A tensor around one of its extents: [outer, extent, inner].
struct Around {
  std::int64_t outer = 1, extent = 1, inner = 1;
};
Around around(const Shape& shape, std::size_t axis);

// Why a node of these ops is refused; empty if it is not.

/// Of add: a sum with a term that is spread along other than outer extents.
std::string add_refuses(const Node& node, std::span<const TensorType> inputs);
/// Of sum_to and expand: a spread along extents that do not lie together.
std::string sum_refuses(const Node& node, std::span<const TensorType> inputs);
std::string expand_refuses(const Node& node, std::span<const TensorType> inputs);
/// Of adamw and sgd: stochastic rounding of other than 16-bit floats.
std::string optimizer_refuses(const Node& node, std::span<const TensorType> inputs);

}  // namespace halfwatt
