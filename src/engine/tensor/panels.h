#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace halfwatt {

/// Moves the numbers of a matrix [rows, width] to panels: `columns` rows at a time, `steps`
/// numbers of each, then the next ones. Both tensors are of the matrix's type; rows are a
/// multiple of `columns` and width one of `steps`.
void to_panels(const TensorView& matrix,
               std::int64_t columns,
               std::int64_t steps,
               const TensorView& panels);

/// The way back.
void from_panels(const TensorView& panels,
                 std::int64_t columns,
                 std::int64_t steps,
                 const TensorView& matrix);

}  // namespace halfwatt
