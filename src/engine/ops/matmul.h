#pragma once

#include <cstddef>
#include <optional>

#include "engine/graph/graph.h"

namespace halfwatt {

/// Where a product has which of its inputs, behind the operands 0 and 1.
struct MatmulInputs {
  std::optional<std::size_t> bias;
  std::optional<std::size_t> scales;  ///< that of operand 0; that of operand 1 follows it
};

MatmulInputs matmul_inputs(const Node& matmul);

}  // namespace halfwatt
