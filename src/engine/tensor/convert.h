#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "engine/tensor/dtype.h"
#include "engine/tensor/tensor.h"

// The conversions between formats that every cast of the engine is held against, one number at
// a time (encode, decode, rounded) and for whole tensors (convert). What they promise:
//
// - one rounding, to nearest and ties to even, from the source straight to the format: a double
//   is not rounded to float on the way to f16;
// - subnormal numbers and the sign of zero are kept;
// - what is too large becomes infinity, or NaN in e4m3, which has none; or the largest finite
//   number if so wished;
// - a NaN stays one: made quiet, with its sign and as much of its payload as there is room for.
//
// The processor must be in its default state: rounding to nearest, subnormals not flushed.

namespace halfwatt {

/// What becomes of numbers beyond the largest finite one of a format, infinity included.
enum class Overflow : std::uint8_t {
  as_format,  ///< infinity; NaN in e4m3
  saturate,   ///< the largest finite number, with the sign kept
};

/// Directions of rounding; those that PTX has for tf32.
enum class Rounding : std::uint8_t {
  nearest_even,
  nearest_away,  ///< ties away from zero: `cvt.rna.tf32`
  toward_zero,   ///< what tensor cores do to the bits of a float that nobody rounded
};

namespace detail {

template <DType D>
constexpr auto stored_as() {
  if constexpr (D == DType::f64) {
    return double{};
  } else if constexpr (D == DType::f32 || D == DType::tf32) {
    return float{};
  } else if constexpr (D == DType::f16 || D == DType::bf16) {
    return std::uint16_t{};
  } else if constexpr (D == DType::e4m3 || D == DType::e5m2) {
    return std::uint8_t{};
  }
}

/// The bits of a code: sign, exponent, mantissa. `infinity` false: only the code with all ones
/// is no number, as in e4m3.
struct Layout {
  int mantissa;
  int exponent;
  bool infinity = true;

  constexpr int bias() const { return (1 << (exponent - 1)) - 1; }
  constexpr std::uint32_t sign() const { return 1U << (mantissa + exponent); }
  constexpr std::uint32_t fraction() const { return (1U << mantissa) - 1; }
  /// The code that follows the largest finite number.
  constexpr std::uint32_t beyond() const {
    return infinity ? sign() - (1U << mantissa) : sign() - 1;
  }
  constexpr std::uint32_t quiet_nan() const { return beyond() | 1U << (mantissa - 1); }
};

template <DType D>
constexpr Layout layout() {
  static_assert(D == DType::tf32 || D == DType::f16 || D == DType::bf16 || D == DType::e4m3 ||
                D == DType::e5m2);
  switch (D) {
    case DType::tf32:
      return {10, 8};
    case DType::f16:
      return {10, 5};
    case DType::bf16:
      return {7, 8};
    case DType::e4m3:
      return {3, 4, false};
    default:
      return {2, 5};
  }
}

/// The same of float and double, which are converted from.
template <class Float>
struct Wide;
template <>
struct Wide<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr int kBias = 127;
};
template <>
struct Wide<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr int kBias = 1023;
};

/// `condition ? yes : no`, as a mask: gcc turns the plain form into a branch where one side is
/// a sum of floats, which might trap, and then does not vectorise the loop around it.
template <class Bits>
constexpr Bits chosen(bool condition, Bits yes, Bits no) {
  const Bits mask = Bits{0} - static_cast<Bits>(condition);
  return (yes & mask) | (no & ~mask);
}

/// The bits of 2^exponent.
template <class Float>
constexpr typename Wide<Float>::Bits power_of_two(int exponent) {
  using Bits = typename Wide<Float>::Bits;
  return static_cast<Bits>(exponent + Wide<Float>::kBias) << Wide<Float>::kMantissa;
}

/// What turns the exponent of `Float` into that of `to`, in units of `to`'s mantissa; 0 if
/// they have as many bits, and then subnormals need no thought either.
template <class Float, DType to>
inline constexpr auto kRebias =
    static_cast<typename Wide<Float>::Bits>(Wide<Float>::kBias - layout<to>().bias())
    << layout<to>().mantissa;

/// The code of `value`, given its rounded `code` without sign: put right where `value` is too
/// large for the format or no number.
template <class Float, DType to>
constexpr std::uint32_t finished(Float value,
                                 typename Wide<Float>::Bits code,
                                 Overflow overflow) {
  using Bits = typename Wide<Float>::Bits;
  constexpr Layout kTo = layout<to>();
  constexpr int kSign = sizeof(Float) * 8 - 1;
  constexpr int kDropped = Wide<Float>::kMantissa - kTo.mantissa;
  constexpr Bits kInfinity = power_of_two<Float>(Wide<Float>::kBias + 1);
  const auto bits = std::bit_cast<Bits>(value);
  const Bits magnitude = bits & ~(Bits{1} << kSign);
  const Bits beyond = kTo.beyond() - (overflow == Overflow::saturate ? 1U : 0U);
  const Bits nan = kTo.quiet_nan() | ((magnitude >> kDropped) & kTo.fraction());
  code = chosen(code >= kTo.beyond(), beyond, code);
  code = chosen(magnitude > kInfinity, nan, code);
  const Bits sign = bits >> kSign << (kTo.mantissa + kTo.exponent);
  return static_cast<std::uint32_t>(sign | code);
}

/// The code that `value` is rounded to.
template <DType to, Rounding rounding = Rounding::nearest_even, class Float>
constexpr std::uint32_t code_of(Float value, Overflow overflow) {
  using Bits = typename Wide<Float>::Bits;
  constexpr Layout kTo = layout<to>();
  constexpr int kDropped = Wide<Float>::kMantissa - kTo.mantissa;
  constexpr Bits kHalf = Bits{1} << (kDropped - 1);
  const Bits magnitude = std::bit_cast<Bits>(value) & (~Bits{0} >> 1);
  Bits added = 0;
  if constexpr (rounding == Rounding::nearest_even) {
    added = kHalf - 1 + ((magnitude >> kDropped) & 1);
  } else if constexpr (rounding == Rounding::nearest_away) {
    added = kHalf;
  }
  Bits code = ((magnitude + added) >> kDropped) - kRebias<Float, to>;
  if constexpr (kRebias<Float, to> != 0) {
    static_assert(rounding == Rounding::nearest_even);
    // A number whose last bit is worth the format's smallest one makes the adder round.
    constexpr int kMinExponent = 1 - kTo.bias();
    constexpr Bits kRuler = power_of_two<Float>(kMinExponent + kDropped);
    const Float sum = std::bit_cast<Float>(magnitude) + std::bit_cast<Float>(kRuler);
    const Bits small = std::bit_cast<Bits>(sum) - kRuler;
    code = chosen(magnitude < power_of_two<Float>(kMinExponent), small, code);
  }
  return finished<Float, to>(value, code, overflow);
}

}  // namespace detail

/// How one element of a float dtype lies in memory: double for f64, float for f32 and tf32, and
/// the bits in an unsigned integer for the narrower ones.
template <DType D>
using Stored = decltype(detail::stored_as<D>());

/// `value` in the format `to`; see the head of this file.
template <DType to, std::floating_point Float>
constexpr Stored<to> encode(Float value, Overflow overflow = Overflow::as_format) {
  if constexpr (to == DType::f64 || (to == DType::f32 && std::is_same_v<Float, float>)) {
    return value;
  } else if constexpr (to == DType::f32) {
    // IEC 559 says what a number that no float can hold becomes; the language leaves it open.
    const auto narrow = static_cast<float>(value);
    const bool too_large = std::isinf(narrow) && overflow == Overflow::saturate;
    return too_large ? std::copysign(0x1.fffffep127F, narrow) : narrow;
  } else if constexpr (to == DType::tf32) {
    return std::bit_cast<float>(detail::code_of<to>(value, overflow) << 13);
  } else {
    return static_cast<Stored<to>>(detail::code_of<to>(value, overflow));
  }
}

/// The number that an element of `from` stands for, exactly: a double for f64, else a float.
template <DType from>
constexpr auto decode(Stored<from> stored) {
  if constexpr (std::is_floating_point_v<Stored<from>>) {
    return stored;
  } else {
    constexpr detail::Layout kFrom = detail::layout<from>();
    constexpr int kShift = 23 - kFrom.mantissa;
    constexpr std::uint32_t kSmallest = detail::power_of_two<float>(1 - kFrom.bias());
    const std::uint32_t magnitude = stored & (kFrom.sign() - 1);
    const std::uint32_t sign = (stored & kFrom.sign())
                               << (31 - kFrom.mantissa - kFrom.exponent);
    const std::uint32_t shifted = magnitude << kShift;
    std::uint32_t bits = shifted;
    if constexpr (detail::kRebias<float, from> != 0) {
      // 1.x of the least exponent, less 1 of it, is the 0.x that a subnormal code means.
      const float small =
          std::bit_cast<float>(kSmallest + shifted) - std::bit_cast<float>(kSmallest);
      const std::uint32_t special = 0x7F800000U | (shifted & 0x7FFFFFU);
      bits += detail::kRebias<float, from> << kShift;
      bits = detail::chosen(magnitude >> kFrom.mantissa == 0,
                            std::bit_cast<std::uint32_t>(small), bits);
      bits = detail::chosen(magnitude >= kFrom.beyond(), special, bits);
    }
    return std::bit_cast<float>(sign | bits);
  }
}

/// `value` as tf32, rounded in one of PTX's ways; a float whose low 13 bits are zero.
constexpr float to_tf32(float value,
                        Rounding rounding,
                        Overflow overflow = Overflow::as_format) {
  const auto code = [&] {
    switch (rounding) {
      case Rounding::nearest_away:
        return detail::code_of<DType::tf32, Rounding::nearest_away>(value, overflow);
      case Rounding::toward_zero:
        return detail::code_of<DType::tf32, Rounding::toward_zero>(value, overflow);
      case Rounding::nearest_even:
        break;
    }
    return detail::code_of<DType::tf32>(value, overflow);
  };
  return std::bit_cast<float>(code() << 13);
}

/// `value` in f16 or bf16, rounded up in magnitude with the probability that makes the result
/// right on average. `random`: independent uniform bits, of which the lowest n are used where n
/// bits are lost (16 in bf16; 13 in f16, more for its subnormals, up to 32, so that
/// probabilities there are multiples of 2^-32). Between the largest finite number and the power
/// of two above it, overflow is a matter of chance too.
template <DType to>
requires(to == DType::f16 || to == DType::bf16) constexpr Stored<to> encode_stochastic(
    float value, std::uint32_t random, Overflow overflow = Overflow::as_format) {
  constexpr detail::Layout kTo = detail::layout<to>();
  constexpr int kDropped = 23 - kTo.mantissa;
  constexpr std::uint32_t kMinExponent = 128 - kTo.bias();
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
  const std::uint32_t exponent = magnitude >> 23;
  std::uint32_t code = 0;
  if (detail::kRebias<float, to> == 0 || exponent >= kMinExponent) {
    code = (magnitude + (random & ((1U << kDropped) - 1))) >> kDropped;
    code -= detail::kRebias<float, to>;
  } else if (exponent > 0) {
    const std::uint64_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t lost = kDropped + kMinExponent - exponent;
    // Random bits reach 32 places down; what lies below them is cut off.
    const std::uint32_t below = lost > 32 ? lost - 32 : 0;
    const std::uint32_t used = lost - below;
    const std::uint64_t mask = (std::uint64_t{1} << used) - 1;
    const std::uint64_t kept = below < 24 ? significand >> below : 0;
    code = static_cast<std::uint32_t>((kept + (random & mask)) >> used);
  }
  return static_cast<Stored<to>>(detail::finished<float, to>(value, code, overflow));
}

/// `value` after a trip through the format `through`: how narrow arithmetic is emulated.
template <DType through>
constexpr float rounded(float value, Overflow overflow = Overflow::as_format) {
  return static_cast<float>(decode<through>(encode<through>(value, overflow)));
}
/// The same with a float dtype that is known at run time.
float rounded(DType through, float value, Overflow overflow = Overflow::as_format);

/// `value / scale` to the nearest integer, ties to even, held within [-128, 127]; 0 for NaN.
constexpr std::int8_t quantized(float value, float scale) {
  const float wanted = value / scale;
  const float low = wanted < -128.0F ? -128.0F : wanted;
  const float held = low > 127.0F ? 127.0F : low;
  // The last bit of 1.5 * 2^23 is worth one: the adder rounds.
  constexpr float kRuler = 0x1.8p23F;
  const float whole = (held + kRuler) - kRuler;
  return static_cast<std::int8_t>(whole == whole ? whole : 0.0F);
}

/// Whether `convert` goes from one to the other: equal dtypes, and any to a float one. The way
/// from floats to integers is `quantize`, which needs a scale.
bool can_convert(DType from, DType to);

/// Writes the elements of `from` as those of `to`: equal shapes, memory that does not overlap,
/// dtypes that can_convert; anything else is a broken invariant. Equal dtypes are copied. Of
/// integers, those beyond 2^53 are rounded to f64 first; a bool is 0 or 1.
void convert(const TensorView& from,
             const TensorView& to,
             Overflow overflow = Overflow::as_format);

/// Writes rows of `from` along its outermost extent, as many as `to` has, from `first` on, in
/// its dtype and shape; the last row again where there are no more. `from` has one row at
/// least, and each has as many elements as one of `to`.
void rows_into(const TensorView& from, std::int64_t first, const TensorView& to);
/// The same as a tensor of that type.
Tensor rows_as(const TensorView& from, std::int64_t first, const TensorType& type);

/// Writes `quantized` of every number; spans of equal length, a positive scale.
void quantize(std::span<const float> from, float scale, std::span<std::int8_t> to);

}  // namespace halfwatt
