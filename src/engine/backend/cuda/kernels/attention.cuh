#pragma once

#include "engine/backend/cuda/kernels/attention.h"
#include "engine/backend/cuda/kernels/types.cuh"

// What the kernels of attention share.

namespace halfwatt::cuda {

/// Where one image and head lies.
struct Head {
  Index qkv, stride, part;  // first element of q, from token to token, from q to k to v
  Index out, out_stride;
  Index row;  // of lse
};

__device__ inline Head head_of(const AttentionShape& shape, Index at) {
  const Index image = at / shape.heads;
  const Index head = at % shape.heads;
  const Index part = shape.heads * shape.width;
  return {image * shape.tokens * 3 * part + head * shape.width, 3 * part, part,
          image * shape.tokens * part + head * shape.width,     part,     at * shape.tokens};
}

/// A score, or the log of a row's sum, of which nothing is finite.
constexpr float kNothing = -INFINITY;

/// What scores are measured from: weights of a row without a finite score are 0.
__device__ inline float shift_of(float most) { return most == kNothing ? 0.0F : most; }

/// Blocks of `rows` rows of all images and heads, those of a head one behind the other.
inline unsigned grid_of(const AttentionShape& shape, Index rows) {
  const Index blocks = shape.images * shape.heads * ((shape.tokens + rows - 1) / rows);
  HALFWATT_CHECK(blocks < (Index{1} << 31) && shape.width <= kWidestHead,
                 "attention of a grid");
  return static_cast<unsigned>(blocks);
}

// On tensor cores, in tensor_attention.cu and tensor_attention_gradient.cu.

/// Whether the code that runs here has products of tensor cores, and for these heads.
bool is_for_tensor_cores(const Attention& job);
void attention_on_tensor_cores(Stream stream, const Attention& job);
void attention_gradient_on_tensor_cores(Stream stream, const AttentionGradient& job);

}  // namespace halfwatt::cuda
