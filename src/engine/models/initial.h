#pragma once

#include <cstdint>

#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// The first value of a parameter of a ViT, as timm sets it where it is not told otherwise:
/// normal numbers of deviation .02 for weights and positions, 1e-6 for the class token, 1 for
/// the weights of norms, 0 for biases, and PyTorch's uniform ones for the patch embedding. f32.
/// Follows from `seed` and the parameter's name alone.
Tensor initial_value(const StateSpec& parameter, std::uint64_t seed);

}  // namespace halfwatt
