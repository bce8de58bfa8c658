#pragma once

#include "engine/backend/cuda/kernels/memory.h"

namespace halfwatt::cuda {

/// Heads may be as wide as this.
constexpr Index kWidestHead = 96;

struct AttentionShape {
  Index images, tokens, heads, width;  ///< `width` of one head
};

/// softmax(scale * q k^T) v of every image and head.
struct Attention {
  AttentionShape shape;
  Index keys;  ///< tokens that are attended to, from the first on: all; of attention() alone
  float scale;
  bool is_tf32;  ///< f32 operands may be rounded to tf32
  Elements qkv;  ///< as timm packs it: [images, tokens, 3, heads, width]
  Elements out;  ///< [images, tokens, heads, width]
  Elements lse;  ///< [images, heads, tokens]: the log of each row's sum
};
void attention(Stream stream, const Attention& job);

/// Of `qkv`, from what attention() made of it.
struct AttentionGradient : Attention {
  Elements dout, dqkv;
  float* along;  ///< workspace, [images, heads, tokens]: out . dout
};
void attention_gradient(Stream stream, const AttentionGradient& job);

}  // namespace halfwatt::cuda
