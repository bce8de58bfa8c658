// The conversions against a second opinion: every code of the narrow formats, the numbers
// between them, and some millions of random ones, computed in double from the words "round to
// nearest".

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "base/rng.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// `value` to the nearest number of `format`, ties to even.
double nearest(const DTypeFacts& format, double value) {
  if (value == 0 || std::isnan(value)) {
    return value;
  }
  const double beyond = format.dtype == DType::e4m3 ? kNan : std::copysign(kInfinity, value);
  if (std::isinf(value)) {
    return beyond;
  }
  const int exponent = std::max(std::ilogb(value), std::ilogb(format.min_normal));
  const int last_place = exponent - format.mantissa_bits;
  // A whole number of last places: nearbyint is where the rounding happens.
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
  return std::abs(result) > format.max ? beyond : result;
}

/// What a code of `format` means, from the definition of IEEE 754's and OCP's formats.
double meaning(const DTypeFacts& format, std::uint32_t code) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t mantissa = code % (1U << format.mantissa_bits);
  const std::uint32_t exponent =
      code >> format.mantissa_bits & ((1U << format.exponent_bits) - 1);
  const bool negative = code >> (format.mantissa_bits + format.exponent_bits) != 0;
  const bool last_exponent = exponent == (1U << format.exponent_bits) - 1;
  const double sign = negative ? -1 : 1;
  if (format.dtype == DType::e4m3 && last_exponent && mantissa == 7) {
    return kNan;
  }
  if (format.dtype != DType::e4m3 && last_exponent) {
    return mantissa == 0 ? sign * kInfinity : kNan;
  }
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias)
                       : sign * std::ldexp(1 + fraction, static_cast<int>(exponent) - bias);
}

bool same(double one, double other) {
  return (std::isnan(one) && std::isnan(other)) ||
         (one == other && std::signbit(one) == std::signbit(other));
}

template <class T>
class EveryCode : public testing::Test {
 public:
  static constexpr DType kDType = T::value;
  static constexpr std::uint32_t kSign = 1U << (sizeof(Stored<kDType>) * 8 - 1);

  static double decoded(std::uint32_t code) {
    return decode<kDType>(static_cast<Stored<kDType>>(code));
  }
  /// Checks that a float or double becomes `code`, and its negative the negative of that; any
  /// NaN if `code` is one.
  template <class Float>
  static void expect_code(Float value, std::uint32_t code) {
    for (const std::uint32_t sign : {0U, kSign}) {
      const std::uint32_t result = encode<kDType>(sign == 0 ? value : -value);
      ASSERT_EQ(result, sign | code) << text(kDType) << " of " << value;
    }
  }
};

template <DType D>
using Constant = std::integral_constant<DType, D>;
using NarrowFormats = testing::Types<Constant<DType::f16>,
                                     Constant<DType::bf16>,
                                     Constant<DType::e4m3>,
                                     Constant<DType::e5m2>>;

struct Names {
  template <class T>
  static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming): gtest's
    return std::string(text(T::value));
  }
};
TYPED_TEST_SUITE(EveryCode, NarrowFormats, Names);

TYPED_TEST(EveryCode, means_what_its_format_says) {
  const DTypeFacts& format = facts(this->kDType);
  for (std::uint32_t code = 0; code < 2 * this->kSign; ++code) {
    ASSERT_TRUE(same(this->decoded(code), meaning(format, code))) << code;
  }
}

TYPED_TEST(EveryCode, comes_back_from_a_float_and_a_double) {
  constexpr DType kCoded = TestFixture::kDType;
  constexpr std::uint32_t kQuiet =
      kCoded == DType::e4m3 ? 0 : 1U << (detail::layout<kCoded>().mantissa - 1);
  for (std::uint32_t code = 0; code < 2 * this->kSign; ++code) {
    const float number = decode<kCoded>(static_cast<Stored<kCoded>>(code));
    const std::uint32_t wanted = std::isnan(number) ? code | kQuiet : code;
    ASSERT_EQ(encode<kCoded>(number), wanted) << code;
    ASSERT_EQ(encode<kCoded>(double{number}), wanted) << code;
    ASSERT_EQ(encode<kCoded>(number, Overflow::saturate),
              std::isinf(number) ? wanted - 1 : wanted)
        << code;
  }
}

TYPED_TEST(EveryCode, is_told_from_the_next_at_the_middle_between_them) {
  const DTypeFacts& format = facts(this->kDType);
  constexpr std::uint32_t kBeyond = detail::layout<TestFixture::kDType>().beyond();
  for (std::uint32_t code = 0; code < kBeyond; ++code) {
    // Beyond the largest number, the one that would be next if the format went on.
    const double low = meaning(format, code);
    const double high =
        code + 1 < kBeyond ? meaning(format, code + 1) : 2 * low - meaning(format, code - 1);
    const double middle = (low + high) / 2;
    const auto as_float = static_cast<float>(middle);
    ASSERT_EQ(as_float, middle);
    const std::uint32_t even = code % 2 == 0 ? code : code + 1;
    this->expect_code(middle, even);
    this->expect_code(std::nextafter(middle, 0.0), code);
    this->expect_code(std::nextafter(middle, kInfinity), code + 1);
    this->expect_code(as_float, even);
    this->expect_code(std::nextafter(as_float, 0.0F), code);
    this->expect_code(std::nextafter(as_float, HUGE_VALF), code + 1);
  }
}

/// Random floats and doubles of every size, more of them near the numbers of `format`.
class Numbers {
 public:
  explicit Numbers(const DTypeFacts& format)
      : least_(std::log2(format.min_subnormal) - 3), most_(std::log2(format.max) + 2) {}

  float any() { return std::bit_cast<float>(static_cast<std::uint32_t>(rng_.next())); }
  double near() {
    const std::uint64_t bits = rng_.next();
    const double exponent =
        least_ + (most_ - least_) * static_cast<double>(bits >> 40) * 0x1p-24;
    const double fraction = 1 + static_cast<double>(rng_.next() >> 12) * 0x1p-52;
    const double sign = (bits & 1) == 0 ? 1 : -1;
    return sign * std::ldexp(fraction, static_cast<int>(std::floor(exponent)));
  }

 private:
  double least_;
  double most_;
  Rng rng_{20};
};

template <DType D>
void expect_nearest(int numbers) {
  const DTypeFacts& format = facts(D);
  Numbers random(format);
  for (int i = 0; i < numbers; ++i) {
    const float any = random.any();
    const double wide = random.near();
    const auto near = static_cast<float>(wide);
    ASSERT_TRUE(same(rounded<D>(any), nearest(format, any))) << any;
    ASSERT_TRUE(same(rounded<D>(near), nearest(format, near))) << near;
    ASSERT_TRUE(same(decode<D>(encode<D>(wide)), nearest(format, wide))) << wide;
  }
}

TEST(RandomNumbers, go_to_the_nearest_number_of_every_format) {
  constexpr int kNumbers = 400'000;  // three kinds, six formats: seven million
  expect_nearest<DType::f32>(kNumbers);
  expect_nearest<DType::tf32>(kNumbers);
  expect_nearest<DType::f16>(kNumbers);
  expect_nearest<DType::bf16>(kNumbers);
  expect_nearest<DType::e4m3>(kNumbers);
  expect_nearest<DType::e5m2>(kNumbers);
}

TEST(RandomNumbers, go_to_tf32_in_every_way) {
  Numbers random(facts(DType::tf32));
  for (int i = 0; i < 400'000; ++i) {
    const float value = random.any();
    if (!std::isfinite(value)) {
      continue;
    }
    const double last_place = std::ldexp(1.0, std::max(std::ilogb(value), -126) - 10);
    const double away = std::round(value / last_place) * last_place;
    const double zero = std::trunc(value / last_place) * last_place;
    ASSERT_TRUE(same(to_tf32(value, Rounding::nearest_away), static_cast<float>(away)))
        << value;
    ASSERT_TRUE(same(to_tf32(value, Rounding::toward_zero), static_cast<float>(zero))) << value;
  }
}

}  // namespace
}  // namespace halfwatt
