#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace halfwatt::cpu {

/// Instructions that the kernels are compiled for; each includes those before it.
enum class Isa : std::uint8_t {
  portable,     ///< what every processor of the architecture has
  avx2,         ///< AVX2 and FMA
  avx512,       ///< AVX-512 F, BW, DQ and VL
  avx512_bf16,  ///< and products of bf16 pairs: matmul, attention
};
inline constexpr std::array kIsas = {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16};

/// As a user writes it: "avx512".
std::string_view text(Isa isa);

/// Whether this program was built for `isa` and runs on a processor that has it.
bool machine_has(Isa isa);

/// The most that the machine has or, if `wanted` (the variable HALFWATT_ISA) is neither null
/// nor empty, what it names. bad_input if that is no ISA, or none of this machine.
Result<Isa> chosen_isa(const char* wanted);

}  // namespace halfwatt::cpu
