#pragma once

#include "engine/backend/cpu/kernels/per_isa/numbers.h"

// exp and the normal distribution, as plain arithmetic without branches, so that loops over
// them become vector code: some 20 operations an element. libm's are calls for each element
// (gelu of 1576x3072 takes PyTorch 1.13 8 ms that way), and gcc has vector versions under
// -ffast-math only. double is the reference and takes libm's.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// e^x for x <= 88, and infinity above; results that are no normal numbers are 0. Error below
/// 2 units in the last place. Coefficients: Cephes' expf.
inline float exp_of(float x) {
  constexpr float kLeast = -87.33654F;
  constexpr float kMost = 88.F;
  // Adding this rounds to an integer, and leaves it in the low bits.
  constexpr float kRounder = 0x1.8p23F;
  const float shifted = x * 1.44269504088896341F + kRounder;
  const float n = shifted - kRounder;
  // ln 2 in two parts, the first so short that n times it is exact.
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.F;
  const std::uint32_t power = (__builtin_bit_cast(std::uint32_t, shifted) << 23) + 0x3f800000U;
  const float result = p * __builtin_bit_cast(float, power);
  return x < kLeast ? 0.F : (x > kMost ? __builtin_inff() : result);
}
inline double exp_of(double x) { return __builtin_exp(x); }

inline float log_of(float x) { return __builtin_logf(x); }
inline double log_of(double x) { return __builtin_log(x); }
inline float log1p_of(float x) { return __builtin_log1pf(x); }
inline double log1p_of(double x) { return __builtin_log1p(x); }

/// P(N(0, 1) <= x), with an absolute error below 4e-8; the lower tail has one of 2e-5 of itself
/// down to -7, and is 0 beyond (1e-12). 2 to the power of a polynomial: log2 of the tail is so
/// smooth that one fits all of it, where an erf would need two of them and a choice. The
/// coefficients were fitted here, to min max |error| * max(tail, 1e-3) on [0, 7].
inline float normal_cdf(float x) {
  constexpr float kLast = 7.F;
  constexpr float kRounder = 0x1.8p23F;
  const float t = x < 0 ? -x : x;
  float log = -1.5864284e-8F;
  log = log * t + 5.3989970e-7F;
  log = log * t - 7.7383620e-6F;
  log = log * t + 5.9029528e-5F;
  log = log * t - 2.2526518e-4F;
  log = log * t - 1.0001509e-4F;
  log = log * t + 7.0529049e-3F;
  log = log * t - 5.2501991e-2F;
  log = log * t - 4.5920449e-1F;
  log = (log * t - 1.1511056F) * t;  // of the tail over 1/2, the tail at 0
  const float shifted = log + kRounder;
  const float r = log - (shifted - kRounder);
  float power = 0.5F * 1.5353362e-4F;
  power = power * r + 0.5F * 1.3398875e-3F;
  power = power * r + 0.5F * 9.6184370e-3F;
  power = power * r + 0.5F * 5.5503324e-2F;
  power = power * r + 0.5F * 2.4022648e-1F;
  power = power * r + 0.5F * 6.9314720e-1F;
  power = power * r + 0.5F;
  const std::uint32_t exponent = __builtin_bit_cast(std::uint32_t, shifted) << 23;
  const float tail =
      __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, power) + exponent);
  const float lower = t > kLast ? 0.F : tail;
  return x < 0 ? lower : 1.F - lower;
}
inline double normal_cdf(double x) { return 0.5 * __builtin_erfc(x * -0.70710678118654752440); }

/// The density of N(0, 1).
template <class T>
T normal_density(T x) {
  return exp_of(T(-0.5) * x * x) * T(0.39894228040143267794);
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
