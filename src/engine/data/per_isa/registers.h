#pragma once

#include <immintrin.h>

#include <cstdint>

// The few operations that the resampler is written in, for AVX2 and for AVX-512 with VNNI.
// Registers are rows of lanes of 128 bits; `unpack_*` and `pack_*` stay within a lane.

namespace halfwatt::HALFWATT_ISA_NAMESPACE {

#if __AVX512VNNI__
using Register = __m512i;
inline constexpr std::int64_t kLanes = 4;
inline Register zero() { return _mm512_setzero_si512(); }
inline Register load(const std::uint8_t* from) { return _mm512_loadu_si512(from); }
inline void store(std::uint8_t* to, Register x) { _mm512_storeu_si512(to, x); }
inline Register everywhere(std::int32_t x) { return _mm512_set1_epi32(x); }
inline Register in_every_lane(__m128i x) { return _mm512_broadcast_i32x4(x); }
inline Register add(Register a, Register b) { return _mm512_add_epi32(a, b); }
template <int bits>
Register left(Register x) {
  return _mm512_slli_epi32(x, bits);
}
template <int bits>
Register right(Register x) {
  return _mm512_srai_epi32(x, bits);
}
inline Register shuffle(Register x, Register by) { return _mm512_shuffle_epi8(x, by); }
inline Register unpack_low(Register a, Register b) { return _mm512_unpacklo_epi8(a, b); }
inline Register unpack_high(Register a, Register b) { return _mm512_unpackhi_epi8(a, b); }
inline Register pack_32(Register a, Register b) { return _mm512_packs_epi32(a, b); }
inline Register pack_16(Register a, Register b) { return _mm512_packus_epi16(a, b); }
/// Of pairs of 16 bits: sum + a0 * b0 + a1 * b1.
inline Register sum_of_pairs(Register sum, Register a, Register b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}
template <int at>
__m128i lane(Register x) {
  return _mm512_extracti32x4_epi32(x, at);
}
#else
using Register = __m256i;
inline constexpr std::int64_t kLanes = 2;
inline Register zero() { return _mm256_setzero_si256(); }
inline Register load(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store(std::uint8_t* to, Register x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}
inline Register everywhere(std::int32_t x) { return _mm256_set1_epi32(x); }
inline Register in_every_lane(__m128i x) { return _mm256_broadcastsi128_si256(x); }
inline Register add(Register a, Register b) { return _mm256_add_epi32(a, b); }
template <int bits>
Register left(Register x) {
  return _mm256_slli_epi32(x, bits);
}
template <int bits>
Register right(Register x) {
  return _mm256_srai_epi32(x, bits);
}
inline Register shuffle(Register x, Register by) { return _mm256_shuffle_epi8(x, by); }
inline Register unpack_low(Register a, Register b) { return _mm256_unpacklo_epi8(a, b); }
inline Register unpack_high(Register a, Register b) { return _mm256_unpackhi_epi8(a, b); }
inline Register pack_32(Register a, Register b) { return _mm256_packs_epi32(a, b); }
inline Register pack_16(Register a, Register b) { return _mm256_packus_epi16(a, b); }
/// Of pairs of 16 bits: sum + a0 * b0 + a1 * b1.
inline Register sum_of_pairs(Register sum, Register a, Register b) {
  return add(sum, _mm256_madd_epi16(a, b));
}
template <int at>
__m128i lane(Register x) {
  return _mm256_extracti128_si256(x, at);
}
#endif

inline __m128i load_lane(const std::uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

/// 16 bytes of each of kLanes rows.
inline Register load_rows(const std::uint8_t* from, std::int64_t stride) {
#if __AVX512VNNI__
  Register x = _mm512_castsi128_si512(load_lane(from));
  x = _mm512_inserti32x4(x, load_lane(from + stride), 1);
  x = _mm512_inserti32x4(x, load_lane(from + 2 * stride), 2);
  return _mm512_inserti32x4(x, load_lane(from + 3 * stride), 3);
#else
  const Register x = _mm256_castsi128_si256(load_lane(from));
  return _mm256_inserti128_si256(x, load_lane(from + stride), 1);
#endif
}

/// Four bytes to each of `rows` rows: the first four of each lane, then the next four.
template <std::int64_t rows, std::int64_t at = 0>
void store_rows(std::uint8_t* to, std::int64_t stride, Register x) {
  if constexpr (at < rows) {
    const int bytes = _mm_extract_epi32(lane<at % kLanes>(x), at / kLanes);
    __builtin_memcpy(to + at * stride, &bytes, sizeof bytes);
    store_rows<rows, at + 1>(to, stride, x);
  }
}

}  // namespace halfwatt::HALFWATT_ISA_NAMESPACE
