#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/graph/graph.h"

namespace halfwatt {

/// What an operand of a layer's products is: each kind has a scale of its own. A gradient is
/// that of the layer's output.
enum class Fp8Operand : std::uint8_t { input, weight, gradient };

std::string_view text(Fp8Operand operand);

/// An operand as people name it: "blocks.0.mlp.fc1.input".
std::string fp8_operand_name(std::string_view layer, Fp8Operand operand);
/// The state that an operand is multiplied with before it is rounded: f32, 1 at first.
std::string fp8_scale_name(std::string_view layer, Fp8Operand operand);
/// The state of the operand's largest magnitudes: f32 [steps], 0 at first. Element 0 is of the
/// step at hand, the others of those before it, the last one last.
std::string fp8_history_name(std::string_view layer, Fp8Operand operand);

/// What the names of these states end in, behind that of the operand.
inline constexpr std::string_view kFp8Scale = ".fp8_scale";
inline constexpr std::string_view kFp8History = ".fp8_amax";

/// The history that belongs to a scale.
std::string fp8_history_of(std::string_view scale);

/// By what `amax` becomes the largest number of `format`, halved `margin` times; `otherwise`
/// where the amax is 0 or not finite. Section 1.9 of the facts on mixed precision.
float scale_to(DType format, float amax, int margin, float otherwise);

}  // namespace halfwatt
