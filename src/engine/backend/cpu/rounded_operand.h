#pragma once

#include <cstddef>
#include <optional>

#include "engine/backend/cpu/call.h"

namespace halfwatt::cpu {

/// The largest magnitude of `count` numbers, NaN if one of them is none; 0 of no numbers.
float largest_magnitude(const float* from, Index count);

/// By what `amax` becomes the largest number of `format`, halved `margin` times; `otherwise`
/// where the amax is 0 or not finite. Section 1.9 of the facts on mixed precision.
float scale_to(DType format, float amax, int margin, float otherwise);

/// Operand `at` of a product, 0 or 1, as one takes it whose operands are `format`: each number
/// rounded to that, and for an fp8 scaled before and after. The scale is the input `scale`, and
/// the operand's largest magnitude is written to output 1 or 2; nullopt: that magnitude sets
/// the scale.
const float* rounded_operand(Call& call,
                             std::size_t at,
                             DType format,
                             std::optional<std::size_t> scale);

}  // namespace halfwatt::cpu
