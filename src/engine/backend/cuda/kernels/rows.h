#pragma once

#include "engine/backend/cuda/kernels/memory.h"
#include "engine/backend/shapes.h"

// Kernels over rows: norms and sums. Sums are in fp32 and in an order that follows from the
// shape alone.

namespace halfwatt::cuda {

struct LayerNorm {
  Index rows, width;
  Elements x;
  Elements residual;  ///< added to x first, if it is there
  Elements sum;       ///< where x + residual goes, and it is this, as stored, that is normed
  Elements gamma, beta;
  float epsilon;
  Elements y, mean, rstd;
};

/// y = (x - mean) * rstd * gamma + beta of each row.
void layer_norm(Stream stream, const LayerNorm& job);

struct LayerNormGradient {
  Index rows, width;
  Elements dy, x, gamma, mean, rstd;
  Elements residual;  ///< a gradient that is added to dx, if it is there
  Elements dx, dgamma, dbeta;
  std::byte* workspace;
};

/// dx of every row, and the sums over rows that are dgamma and dbeta. dx may lie where dy does.
void layer_norm_gradient(Stream stream, const LayerNormGradient& job);
/// Bytes of its workspace.
std::size_t layer_norm_gradient_bytes(Index rows, Index width);

/// y [outer, width] = sums of x [outer, rows, width] over its rows.
void sum_rows(Stream stream,
              Elements x,
              Elements y,
              Index outer,
              Index rows,
              Index width,
              std::byte* workspace);
/// Bytes of its workspace.
std::size_t sum_rows_bytes(Index outer, Index rows, Index width);

/// y [outer, inner] = the mean of x around its extent.
void mean(Stream stream, Elements x, Elements y, const Around& x_around);

}  // namespace halfwatt::cuda
