#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/graph/graph.h"

namespace halfwatt {

/// Where a product has which of its inputs, behind the operands 0 and 1.
struct MatmulInputs {
  std::optional<std::size_t> bias;
  std::optional<std::size_t> scales;  ///< that of operand 0; that of operand 1 follows it
};

MatmulInputs matmul_inputs(const Node& matmul);

/// A product of [m, k] by [k, n], however its operands lie.
struct MatmulExtents {
  std::int64_t m, k;
  std::int64_t k_of_b;  ///< that of operand 1: in a product that fits, k too
  std::int64_t n;
};

/// Those of a product whose operands have these shapes, of rank 2 at least.
MatmulExtents matmul_extents(const Node& matmul, const Shape& a, const Shape& b);

}  // namespace halfwatt
