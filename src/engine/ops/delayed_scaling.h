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

}  // namespace halfwatt
