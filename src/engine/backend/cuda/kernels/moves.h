#pragma once

#include "engine/backend/cuda/kernels/memory.h"

// Kernels that move elements and compute nothing; where dtypes differ, they are converted.

namespace halfwatt::cuda {

/// `pieces` runs of `length` elements: run i from from_at + i * from_step (or, with `times`,
/// (i / times) * from_step) to to_at + i * to_step.
struct Runs {
  Index pieces, length;
  Index from_at, from_step, times = 1;
  Index to_at, to_step;
};

/// Copies these runs.
void move(Stream stream, Elements from, Elements to, const Runs& runs);

/// y [outer, columns, rows] = x [outer, rows, columns] with its last two extents changed over;
/// elements of `bytes` each.
void transpose(Stream stream,
               const std::byte* x,
               std::byte* y,
               Index outer,
               Index rows,
               Index columns,
               std::size_t bytes);

}  // namespace halfwatt::cuda
