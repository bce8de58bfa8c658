#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/models/vit.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// The share of the learning rate that each parameter of `model` has where it falls by the
/// factor `decay` from layer to layer, as timm's param_groups_layer_decay() deals it out: 1 for
/// the head, `decay` for the last block and the norm behind it, and so on down to the
/// embedding, which is below the first block.
std::map<std::string, double, std::less<>> layer_rates(const VitConfig& model, double decay);

/// The side, in patches, of a square of position embeddings `positions`: [1, 1 + side^2, D],
/// the first of the class token; 0 if they are none of a square.
std::int64_t side_of(const Shape& positions);

/// Position embeddings, floats as above, of a square of `side` patches instead: bicubic with
/// antialiasing, the class token's as it is, as timm's resample_abs_pos_embed(). f32.
Tensor resampled_positions(const TensorView& positions, std::int64_t side);

}  // namespace halfwatt
