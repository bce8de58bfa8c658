#include "engine/tensor/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/tensor/keyed_random.h"

namespace halfwatt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kFloatMax = std::numeric_limits<float>::max();

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

struct Vector {
  float value;
  std::uint32_t code;
};

template <DType D>
void expect_codes(const std::vector<Vector>& vectors, Overflow overflow = Overflow::as_format) {
  for (const Vector& vector : vectors) {
    EXPECT_EQ(encode<D>(vector.value, overflow), vector.code) << vector.value;
    EXPECT_EQ(encode<D>(double{vector.value}, overflow), vector.code) << vector.value;
  }
}

// The vectors of this file are numbers 1 to 6, 12 and 21 of the facts on mixed precision, which
// were computed apart from this code.
TEST(Convert, rounds_to_f16_at_its_borders) {
  expect_codes<DType::f16>({{65504, 0x7BFF},
                            {float_of(0x477FEFFF), 0x7BFF},
                            {65520, 0x7C00},
                            {-65520, 0xFC00},
                            {0x1p-24F, 0x0001},
                            {0x1p-25F, 0x0000},
                            {float_of(0x33000001), 0x0001},
                            {1.5F * 0x1p-24F, 0x0002},
                            {2.5F * 0x1p-24F, 0x0002},
                            {1 + 0x1p-11F, 0x3C00},
                            {1 + 3 * 0x1p-11F, 0x3C02}});
  EXPECT_EQ(rounded<DType::f16>(2049), 2048);
  EXPECT_EQ(rounded<DType::f16>(2051), 2052);
  EXPECT_EQ(rounded<DType::f16>(1 + 3 * 0x1p-11F), 1.001953125F);
}

TEST(Convert, rounds_the_constants_of_training_to_f16) {
  expect_codes<DType::f16>({{0.1F, 0x2E66},
                            {1e-8F, 0x0000},
                            {1e-7F, 0x0002},
                            {1e-6F, 0x0011},
                            {1e-5F, 0x00A8},
                            {0.999F, 0x3BFE},
                            {0.001F, 0x1419}});
  EXPECT_EQ(rounded<DType::f16>(0.999F), 0.99902344F);
}

TEST(Convert, rounds_to_bf16) {
  expect_codes<DType::bf16>({{float_of(0x3F808000), 0x3F80},
                             {float_of(0x3F808001), 0x3F81},
                             {float_of(0x3F818000), 0x3F82},
                             {0.1F, 0x3DCD},
                             {3.14159265F, 0x4049},
                             {0.999F, 0x3F80},
                             {float_of(0x7F7F7FFF), 0x7F7F},
                             {float_of(0x7F7F8000), 0x7F80},
                             {kFloatMax, 0x7F80},
                             {float_of(0x00008000), 0x0000},
                             {float_of(0x00008001), 0x0001}});
  EXPECT_EQ(encode<DType::bf16>(float_of(0x7F800001)), 0x7FC0) << "a signalling NaN stays one";
  EXPECT_EQ(rounded<DType::bf16>(257), 256);
  EXPECT_EQ(rounded<DType::bf16>(259), 260);
}

TEST(Convert, rounds_to_e4m3_which_has_no_infinity) {
  expect_codes<DType::e4m3>({{448, 0x7E},
                             {464, 0x7E},
                             {465, 0x7F},
                             {kInfinity, 0x7F},
                             {0x1p-6F, 0x08},
                             {0x1p-9F, 0x01},
                             {0x1p-10F, 0x00},
                             {1.0001F * 0x1p-10F, 0x01},
                             {17, 0x58},
                             {19, 0x5A},
                             {0.1F, 0x1D},
                             {1.0F / 3, 0x2B},
                             {1.1875F, 0x3A},
                             {-0.0F, 0x80},
                             {kNan, 0x7F}});
  expect_codes<DType::e4m3>(
      {{465, 0x7E}, {kInfinity, 0x7E}, {-448.1F, 0xFE}, {-kInfinity, 0xFE}, {kNan, 0x7F}},
      Overflow::saturate);
}

TEST(Convert, rounds_to_e5m2) {
  expect_codes<DType::e5m2>({{57344, 0x7B},
                             {61439, 0x7B},
                             {61440, 0x7C},
                             {0x1p-16F, 0x01},
                             {0x1p-17F, 0x00},
                             {0.1F, 0x2E},
                             {1.125F, 0x3C},
                             {1.375F, 0x3E},
                             {-9, 0xC8}});
  expect_codes<DType::e5m2>({{61440, 0x7B}, {-kInfinity, 0xFB}}, Overflow::saturate);
}

TEST(Convert, rounds_to_tf32_in_the_three_ways_of_ptx) {
  const struct {
    float value, away, even, zero;
  } vectors[] = {
      {1 + 0x1p-11F, 1.0009765625F, 1, 1},
      {1 + 3 * 0x1p-11F, 1.001953125F, 1.001953125F, 1.0009765625F},
      {float_of(0x3F800FFF), 1, 1, 1},
      {kFloatMax, kInfinity, kInfinity, float_of(0x7F7FE000)},
      {1.0F / 3, .333251953125F, .333251953125F, .333251953125F},
  };
  for (const auto& vector : vectors) {
    for (const float sign : {1.0F, -1.0F}) {
      const float value = sign * vector.value;
      EXPECT_EQ(to_tf32(value, Rounding::nearest_away), sign * vector.away) << value;
      EXPECT_EQ(to_tf32(value, Rounding::nearest_even), sign * vector.even) << value;
      EXPECT_EQ(to_tf32(value, Rounding::toward_zero), sign * vector.zero) << value;
      EXPECT_EQ(encode<DType::tf32>(value), sign * vector.even) << value;
    }
  }
  EXPECT_EQ(to_tf32(kFloatMax, Rounding::nearest_away, Overflow::saturate), 0x1.ffcp127F);
  EXPECT_TRUE(std::isnan(to_tf32(float_of(0x7F800001), Rounding::toward_zero)));
}

TEST(Convert, keeps_a_nan_with_its_sign_and_payload) {
  EXPECT_EQ(encode<DType::f16>(float_of(0xFFC02000)), 0xFE01);
  EXPECT_EQ(encode<DType::f16>(float_of(0x7F800001), Overflow::saturate), 0x7E00);
  EXPECT_EQ(encode<DType::bf16>(float_of(0xFFFFFFFF)), 0xFFFF);
  EXPECT_EQ(encode<DType::e5m2>(float_of(0xFF800001)), 0xFE);
  EXPECT_EQ(encode<DType::e4m3>(float_of(0xFFC00000)), 0xFF);
  EXPECT_TRUE(std::isnan(rounded(DType::f32, kNan)));
}

TEST(Convert, saturates_at_the_largest_number_of_every_format) {
  for (const DType dtype : {DType::tf32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    const auto max = static_cast<float>(facts(dtype).max);
    EXPECT_EQ(rounded(dtype, kInfinity, Overflow::saturate), max) << text(dtype);
    EXPECT_EQ(rounded(dtype, -kFloatMax, Overflow::saturate), -max) << text(dtype);
    EXPECT_EQ(rounded(dtype, max), max) << text(dtype);
  }
  EXPECT_EQ(encode<DType::f32>(-1e300, Overflow::saturate), -kFloatMax);
  EXPECT_EQ(encode<DType::f32>(1e300), kInfinity);
}

TEST(Convert, rounds_a_double_once) {
  // Just above a tie; by way of float it would be the tie, and go to even.
  EXPECT_EQ(encode<DType::f16>(1 + 0x1p-11 + 0x1p-40), 0x3C01);
  EXPECT_EQ(encode<DType::bf16>(1 + 0x1p-8 + 0x1p-40), 0x3F81);
  EXPECT_EQ(encode<DType::e4m3>(1 + 0x1p-4 + 0x1p-40), 0x39);
  EXPECT_EQ(encode<DType::e5m2>(1 + 0x1p-3 + 0x1p-40), 0x3D);
  EXPECT_EQ(encode<DType::tf32>(1 + 0x1p-11 + 0x1p-40), 1.0009765625F);
  EXPECT_EQ(encode<DType::e5m2>(0x1p-17 + 0x1p-60), 0x01);
  EXPECT_EQ(encode<DType::e4m3>(464 + 0x1p-40), 0x7F);
}

TEST(Convert, shows_how_small_updates_are_lost) {
  const auto sum = [](DType dtype, int times, float step) {
    float weight = 1;
    for (int i = 0; i < times; ++i) {
      weight = rounded(dtype, weight + rounded(dtype, step));
    }
    return weight;
  };
  EXPECT_EQ(sum(DType::bf16, 100, -1e-3F), 1.0F);
  EXPECT_EQ(sum(DType::bf16, 100, 5e-3F), 1.78125F);
  EXPECT_EQ(sum(DType::f16, 1000, -2e-4F), 1.0F);
  EXPECT_EQ(sum(DType::f16, 1000, -3e-4F), .51171875F);
}

TEST(Convert, lets_kahan_keep_what_bf16_loses) {
  float weight = 1;
  float lost = 0;
  for (int i = 0; i < 100; ++i) {
    const float step = rounded<DType::bf16>(-1e-3F + lost);
    const float next = rounded<DType::bf16>(weight + step);
    lost = rounded<DType::bf16>(step - rounded<DType::bf16>(next - weight));
    weight = next;
  }
  EXPECT_EQ(weight, .8984375F);
  EXPECT_NEAR(lost, .0016022F, 1e-7F);
  EXPECT_NEAR(weight + lost, .90004F, 1e-5F);
}

/// How often `value` is rounded to the larger magnitude of its two neighbours, of `draws`.
template <DType D>
double times_up(float value, int draws) {
  const KeyedRandom random(7, "convert_test", 0);
  const auto up = encode_stochastic<D>(value, 0xFFFFFFFF);
  int times = 0;
  for (int i = 0; i < draws; ++i) {
    const auto code =
        encode_stochastic<D>(value, random.bits(0, static_cast<std::uint64_t>(i)));
    times += code == up ? 1 : 0;
    EXPECT_TRUE(code == up || code == up - 1);
  }
  return times;
}

template <DType D>
void expect_probability(float value, double probability) {
  constexpr int kDraws = 100'000;
  const double sigma = std::sqrt(kDraws * probability * (1 - probability));
  EXPECT_NEAR(times_up<D>(value, kDraws), kDraws * probability, 4 * sigma) << value;
}

TEST(Convert, rounds_stochastically_in_proportion) {
  expect_probability<DType::bf16>(1.001F, .128006);
  expect_probability<DType::bf16>(-1.001F, .128006);
  expect_probability<DType::bf16>(float_of(0x00004000), .25);
  expect_probability<DType::f16>(1 + 0.75F * 0x1p-10F, .75);
  expect_probability<DType::f16>(-0.3F * 0x1p-24F, .3);
  expect_probability<DType::f16>(300.3F * 0x1p-24F, .3);
  expect_probability<DType::f16>(0x1.8p-34F, 1.5 / 1024);
}

TEST(Convert, rounds_stochastically_by_exactly_the_bits_that_get_lost) {
  // 1.001 in float is 0x3F8020C5: of 65536 draws, as many go up as its low half says.
  int up = 0;
  for (std::uint32_t random = 0; random < 65536; ++random) {
    up += encode_stochastic<DType::bf16>(1.001F, random) == 0x3F81 ? 1 : 0;
  }
  EXPECT_EQ(up, 0x20C5);
  int f16_up = 0;
  for (std::uint32_t random = 0; random < 8192; ++random) {
    f16_up += encode_stochastic<DType::f16>(1.0001F, random) == 0x3C01 ? 1 : 0;
  }
  EXPECT_EQ(f16_up, static_cast<int>(std::bit_cast<std::uint32_t>(1.0001F) & 0x1FFF));
}

TEST(Convert, rounds_stochastically_only_what_needs_it) {
  for (const std::uint32_t random : {0U, 0x12345678U, 0xFFFFFFFFU}) {
    EXPECT_EQ(encode_stochastic<DType::f16>(-1.5F, random), 0xBE00);
    EXPECT_EQ(encode_stochastic<DType::f16>(3 * 0x1p-24F, random), 0x0003);
    EXPECT_EQ(encode_stochastic<DType::f16>(-0.0F, random), 0x8000);
    EXPECT_EQ(encode_stochastic<DType::f16>(1e-40F, random), 0x0000);
    EXPECT_EQ(encode_stochastic<DType::f16>(65536, random), 0x7C00);
    EXPECT_EQ(encode_stochastic<DType::f16>(65536, random, Overflow::saturate), 0x7BFF);
    EXPECT_EQ(encode_stochastic<DType::bf16>(kInfinity, random), 0x7F80);
    EXPECT_EQ(encode_stochastic<DType::bf16>(float_of(0x7F800001), random), 0x7FC0);
  }
}

TEST(Convert, quantizes_half_to_even_and_saturates) {
  const std::vector<float> values = {-.03F, -.01F, .01F,      .03F, .05F,
                                     2.55F, -3,    kInfinity, kNan};
  std::vector<std::int8_t> codes(values.size());
  quantize(values, .02F, codes);
  EXPECT_EQ(codes, (std::vector<std::int8_t>{-2, 0, 0, 2, 2, 127, -128, 127, 0}));
}

TEST(Convert, does_to_tensors_what_it_does_to_numbers) {
  // More elements than any block or vector, and not a multiple of one.
  std::vector<float> values(5003);
  const KeyedRandom random(1, "convert_test", 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(random.uniform(0, i) - .5F, static_cast<int>(i % 60) - 30);
  }
  const auto from = Tensor::of<float>(DType::f32, Shape{5003}, values);
  for (const DType dtype : {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16,
                            DType::e4m3, DType::e5m2}) {
    const Tensor narrow(TensorType{dtype, Shape{5003}});
    Tensor back(TensorType{DType::f32, Shape{5003}});
    convert(from.view(), narrow.view(), Overflow::saturate);
    convert(narrow.view(), back.view());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(back.as<float>()[i], rounded(dtype, values[i], Overflow::saturate))
          << text(dtype) << " of " << values[i];
    }
  }
}

TEST(Convert, takes_tensors_of_doubles_without_a_stop_at_float) {
  const std::vector<double> values = {1 + 0x1p-11 + 0x1p-40, 1e300, -0.0};
  const auto from = Tensor::of<double>(DType::f64, Shape{3}, values);
  Tensor half(TensorType{DType::f16, Shape{3}});
  convert(from.view(), half.view());
  EXPECT_EQ(half.as<std::uint16_t>()[0], 0x3C01);
  EXPECT_EQ(half.as<std::uint16_t>()[1], 0x7C00);
  EXPECT_EQ(half.as<std::uint16_t>()[2], 0x8000);
}

TEST(Convert, takes_integers_to_floats) {
  const auto to_float = [](const Tensor& from, DType dtype) {
    Tensor same(TensorType{dtype, from.shape()});
    convert(from.view(), same.view());
    Tensor result(TensorType{DType::f64, from.shape()});
    convert(same.view(), result.view());
    return std::vector<double>(result.as<double>().begin(), result.as<double>().end());
  };
  const std::vector<std::uint8_t> bytes = {0, 1, 255};
  const std::vector<std::int8_t> signed_bytes = {0, 1, -1};
  const std::vector<std::int32_t> words = {16777217, -2147483647, 7};
  const std::vector<std::int64_t> longs = {65520, -3, 1LL << 40};
  const auto u8 = Tensor::of<std::uint8_t>(DType::u8, Shape{3}, bytes);
  const auto boolean = Tensor::of<std::uint8_t>(DType::boolean, Shape{3}, bytes);
  const auto i8 = Tensor::of<std::int8_t>(DType::i8, Shape{3}, signed_bytes);
  const auto i32 = Tensor::of<std::int32_t>(DType::i32, Shape{3}, words);
  const auto i64 = Tensor::of<std::int64_t>(DType::i64, Shape{3}, longs);
  EXPECT_EQ(to_float(u8, DType::f32), (std::vector<double>{0, 1, 255}));
  EXPECT_EQ(to_float(boolean, DType::bf16), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(to_float(i8, DType::e4m3), (std::vector<double>{0, 1, -1}));
  EXPECT_EQ(to_float(i32, DType::f64), (std::vector<double>{16777217, -2147483647, 7}));
  EXPECT_EQ(to_float(i32, DType::f32), (std::vector<double>{16777216, -2147483648.0, 7}));
  EXPECT_EQ(to_float(i64, DType::f16), (std::vector<double>{kInfinity, -3, kInfinity}));
}

TEST(Convert, tells_what_it_can_do) {
  EXPECT_TRUE(can_convert(DType::i64, DType::f16));
  EXPECT_TRUE(can_convert(DType::e4m3, DType::f64));
  EXPECT_TRUE(can_convert(DType::i64, DType::i64));
  EXPECT_FALSE(can_convert(DType::f32, DType::i8));
  EXPECT_FALSE(can_convert(DType::i32, DType::i64));
}

TEST(Convert, of_no_elements_is_no_trouble) {
  const Tensor from(TensorType{DType::f32, Shape{0, 3}});
  const Tensor to(TensorType{DType::f16, Shape{0, 3}});
  convert(from.view(), to.view());
}

TEST(ConvertDeathTest, wants_equal_shapes_and_a_scale_for_integers) {
  const Tensor three(TensorType{DType::f32, Shape{3}});
  const Tensor four(TensorType{DType::f16, Shape{4}});
  const Tensor bytes(TensorType{DType::i8, Shape{3}});
  EXPECT_DEATH(convert(three.view(), four.view()), "different shapes");
  EXPECT_DEATH(convert(three.view(), bytes.view()), "needs a scale");
  EXPECT_DEATH((void)rounded(DType::i8, 1), "float dtype");
}

}  // namespace
}  // namespace halfwatt
