#pragma once

#include "engine/backend/cuda/kernels/memory.h"

namespace halfwatt::cuda {

/// Losses of rows and their mean over the first `valid`, or the gradient of that mean: the
/// arithmetic of the CPU's kernels.h, in fp32. Losses or gradient may be absent.
struct Loss {
  Index rows, classes;
  Elements logits;
  const std::byte* targets;   ///< i64 labels [rows]
  Elements shares;            ///< targets in [0, 1], [rows, classes]
  const std::int64_t* valid;  ///< one
  float smoothing = 0;
  Elements mean, losses;
  Elements gradient;
  Elements factor;  ///< one: the gradient is times it
};

/// Cross entropy of softmax(logits) with labels, smoothed.
void cross_entropy(Stream stream, const Loss& job);
/// Binary cross entropy of sigmoid(logits) with `shares`.
void binary_cross_entropy(Stream stream, const Loss& job);

}  // namespace halfwatt::cuda
