#pragma once

#include "engine/backend/cpu/kernels/kernels.h"

// The headers of this folder are compiled once for each ISA, in its namespace. They call
// nothing inline of the standard library: such a function, compiled for AVX-512 here, could be
// the copy that the linker keeps for the whole program. Hence the builtins.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

inline Index smaller(Index one, Index other) { return one < other ? one : other; }
inline Index larger(Index one, Index other) { return one > other ? one : other; }
/// The smallest multiple of `unit` that is at least `count`.
inline Index rounded_up(Index count, Index unit) { return (count + unit - 1) / unit * unit; }

/// An element as a number to compute with.
inline float real(float x) { return x; }
inline double real(double x) { return x; }
inline float real(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x) << 16);
}

/// To nearest, ties to even; a NaN stays one.
inline Bf16 rounded_to_bf16(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40;
  return static_cast<Bf16>((bits & 0x7fffffff) > 0x7f800000 ? quiet : nearest);
}

/// A number as an element.
template <class E>
E stored(Real<E> x) {
  if constexpr (sizeof(E) == sizeof(Bf16)) {
    return rounded_to_bf16(x);
  } else {
    return x;
  }
}

/// `body(i)` for all of [begin, end), in any order and side by side.
template <class Body>
void each(Index begin, Index end, Body body) {
#pragma omp simd
  for (Index i = begin; i < end; ++i) {
    body(i);
  }
}

inline float square_root(float x) { return __builtin_sqrtf(x); }
inline double square_root(double x) { return __builtin_sqrt(x); }

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
