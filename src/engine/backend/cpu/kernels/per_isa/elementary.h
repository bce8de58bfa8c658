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

/// P(N(0, 1) <= x), half of 1 + erf(x / sqrt 2), from an erf with an absolute error below 1e-7.
/// The lower tail is computed as such, to 1e-4 of itself at -5, where 1 + erf has one digit
/// left. Polynomials: N. Juffa's erff (an odd one up to 0.93, exp of one beyond).
inline float normal_cdf(float x) {
  const float z = x * 0.70710678118654752F;
  const float t = z < 0 ? -z : z;
  const float s = z * z;
  float middle = -5.96761703e-4F;
  middle = middle * s + 4.99119423e-3F;
  middle = middle * s - 2.67681349e-2F;
  middle = middle * s + 1.12819925e-1F;
  middle = middle * s - 3.76125336e-1F;
  middle = middle * s + 1.28379166e-1F;
  middle = middle * z + z;  // erf
  float tail = -1.72853470e-5F * t + 3.83197126e-4F;
  tail = tail * s + (-3.88396438e-3F * t + 2.42546219e-2F);
  tail = tail * t - 1.06777877e-1F;
  tail = tail * t - 6.34846687e-1F;
  tail = tail * t - 1.28717512e-1F;
  tail = tail * t - t;
  const float beyond = 0.5F * exp_of(tail);  // half of erfc
  return t > 0.927734375F ? (z < 0 ? beyond : 1.F - beyond) : 0.5F + 0.5F * middle;
}
inline double normal_cdf(double x) { return 0.5 * __builtin_erfc(x * -0.70710678118654752440); }

/// The density of N(0, 1).
template <class T>
T normal_density(T x) {
  return exp_of(T(-0.5) * x * x) * T(0.39894228040143267794);
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
