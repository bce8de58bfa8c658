#pragma once

#include "engine/backend/cuda/kernels/memory.h"

namespace halfwatt::cuda {

/// Heads may be as wide as this.
constexpr Index kWidestHead = 96;

struct AttentionShape {
  Index images, tokens, heads, width;  ///< `width` of one head
};

/// softmax(scale * q k^T) v of every image and head; `lse` [images, heads, tokens] is the log
/// of each row's sum. qkv as timm packs it: [images, tokens, 3, heads, width].
void attention(Stream stream,
               const AttentionShape& shape,
               float scale,
               Elements qkv,
               Elements out,
               Elements lse);

struct AttentionGradient {
  AttentionShape shape;
  float scale;
  Elements dout, qkv, out, lse, dqkv;
  float* along;  ///< workspace, [images, heads, tokens]: out . dout
};
void attention_gradient(Stream stream, const AttentionGradient& job);

}  // namespace halfwatt::cuda
