// Section 3 of the facts on mixed precision, vectors 13 to 19, through the backend; of the CPU
// and, in the tests of its room, of a GPU.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "engine/exec/vectors_device.h"
#include "engine/ops/builder.h"
#include "engine/tensor/normalisation.h"

namespace halfwatt {
namespace {

using Normalise = OnVectorsDevice;
using LayerNorm = OnVectorsDevice;
using Softmax = OnVectorsDevice;
using BinaryCrossEntropy = OnVectorsDevice;
using CrossEntropy = OnVectorsDevice;
using Gelu = OnVectorsDevice;
using CurrentScaling = OnVectorsDevice;
using Accumulation = OnVectorsDevice;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Input {
  TensorType type;
  std::vector<double> values;
};

/// Output `output` of one op.
std::vector<double> computed(Op op,
                             const std::vector<Input>& inputs,
                             const Attributes& attributes = {},
                             int output = 0) {
  Graph graph;
  Builder build(graph);
  std::vector<Value> values;
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    values.push_back(build.input("x" + std::to_string(at), inputs[at].type));
  }
  graph.set_result("y", Builder::output(build.add(op, values, attributes), output));
  BackendRun run(vectors_backend(), {graph});
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    run.bind("x" + std::to_string(at), inputs[at].values);
  }
  run.run();
  return run.numbers("y");
}

void expect_near(const std::vector<double>& got,
                 const std::vector<double>& wanted,
                 double error) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t at = 0; at < got.size(); ++at) {
    EXPECT_NEAR(got[at], wanted[at], error) << at;
  }
}

std::vector<double> layer_norm(
    DType dtype, const std::vector<double>& row, double eps, double beta = 0, int output = 0) {
  const auto width = static_cast<std::int64_t>(row.size());
  return computed(Op::layer_norm,
                  {{{dtype, Shape{1, width}}, row},
                   {{dtype, Shape{width}}, {1}},
                   {{dtype, Shape{width}}, {beta}}},
                  {{"eps", eps}}, output);
}

TEST_F(Normalise, gives_each_byte_its_number_in_each_channel) {
  const std::vector<double> means = {0.485F, 0.5F};
  const std::vector<double> deviations = {0.229F, 0.5F};
  std::vector<double> bytes(512);
  std::iota(bytes.begin(), bytes.begin() + 256, 0.0);
  std::iota(bytes.begin() + 256, bytes.end(), 0.0);
  const auto numbers = computed(Op::normalise, {{{DType::u8, Shape{1, 2, 16, 16}}, bytes}},
                                {{"mean", means}, {"deviation", deviations}});
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const std::size_t channel = at / 256;
    const auto byte = static_cast<std::uint8_t>(at % 256);
    EXPECT_EQ(numbers[at], normalised(byte, static_cast<float>(means[channel]),
                                      static_cast<float>(deviations[channel])));
    // Rounded thrice, the first time of at most 1, and then divided.
    EXPECT_NEAR(numbers[at], (byte / 255.0 - means[channel]) / deviations[channel],
                3 * 0x1p-24 / deviations[channel]);
  }
}

TEST_F(LayerNorm, gives_beta_for_a_constant_row) {
  for (const DType dtype : all_floats()) {
    for (const double value : {3.0, 1000.1, 256.0}) {
      const std::vector<double> row(768, value);
      EXPECT_EQ(layer_norm(dtype, row, 1e-6, 0.25), std::vector<double>(768, 0.25))
          << text(dtype) << " " << value;
    }
  }
  const std::vector<double> row(16, 3.0);
  EXPECT_NEAR(layer_norm(DType::f32, row, 1e-6, 0, 2)[0], 1000, 1e-3);
  EXPECT_NEAR(layer_norm(DType::f32, row, 1e-5, 0, 2)[0], 316.2278, 1e-3);
}

TEST_F(LayerNorm, has_the_values_of_the_vectors) {
  expect_near(layer_norm(DType::f32, {1, 2, 3, 4}, 1e-6),
              {-1.34164025, -0.44721341, 0.44721341, 1.34164025}, allowed(2e-7, 6e-7));
  std::vector<double> row(768);
  std::vector<double> wanted(768);
  for (std::size_t at = 0; at < row.size(); ++at) {
    row[at] = 4096 + static_cast<double>(at % 2);
    wanted[at] = at % 2 == 0 ? -0.999998 : 0.999998;
  }
  expect_near(layer_norm(DType::f32, row, 1e-6), wanted, 1e-6);
}

TEST_F(LayerNorm, has_statistics_that_squares_of_half_do_not_overflow) {
  std::vector<double> row(64, 300.0);
  row[0] = -300;
  for (const double each : layer_norm(DType::f16, row, 1e-6)) {
    EXPECT_TRUE(std::isfinite(each) && each != 0);
  }
}

// Attention of one head one wide, whose query is 1: a softmax of the keys, the value of each
// being 1 in an image of its own.
std::vector<double> softmax(DType dtype, const std::vector<double>& scores) {
  const auto n = static_cast<std::int64_t>(scores.size());
  std::vector<double> qkv;
  for (std::int64_t image = 0; image < n; ++image) {
    for (std::int64_t token = 0; token < n; ++token) {
      const double score = scores[static_cast<std::size_t>(token)];
      qkv.insert(qkv.end(), {1, score, token == image ? 1.0 : 0.0});
    }
  }
  const auto out =
      computed(Op::attention, {{{dtype, Shape{n, n, 3}}, qkv}}, {{"heads", std::int64_t{1}}});
  std::vector<double> shares;
  for (std::int64_t image = 0; image < n; ++image) {
    shares.push_back(out[static_cast<std::size_t>(image * n)]);
  }
  return shares;
}

TEST_F(Softmax, has_the_values_of_the_vectors) {
  EXPECT_EQ(softmax(DType::f32, {0, -kInf, 0}), (std::vector<double>{0.5, 0, 0.5}));
  EXPECT_EQ(softmax(DType::f16, {65504, 65504}), (std::vector<double>{0.5, 0.5}));
  expect_near(softmax(DType::f32, {1, 2, 3}), {0.09003057, 0.24472847, 0.66524096},
              allowed(1e-7, 3e-7));
}

TEST_F(Softmax, gives_nothing_and_has_no_gradient_where_all_scores_are_minus_infinity) {
  EXPECT_EQ(softmax(DType::f32, {-kInf, -kInf}), (std::vector<double>{0, 0}));
  const Attributes one_head = {{"heads", std::int64_t{1}}};
  const Input qkv{{DType::f32, Shape{1, 2, 3}}, {1, -kInf, 1, 1, -kInf, 1}};
  const std::vector<double> lse = computed(Op::attention, {qkv}, one_head, 1);
  EXPECT_EQ(lse, (std::vector<double>{-kInf, -kInf}));
  const auto gradient = computed(Op::attention_gradient,
                                 {{{DType::f32, Shape{1, 2, 1}}, {1, 1}},
                                  qkv,
                                  {{DType::f32, Shape{1, 2, 1}}, {0, 0}},
                                  {{DType::f32, Shape{1, 1, 2}}, lse}},
                                 one_head);
  // Of q it is 0 times k, which is infinite; of keys and values it is 0.
  for (const std::size_t at : {1U, 2U, 4U, 5U}) {
    EXPECT_EQ(gradient[at], 0) << at;
  }
}

struct Loss {
  double mean;
  std::vector<double> gradient;
};

Loss loss_of(Op op,
             Op gradient_op,
             const Input& logits,
             const Input& labels,
             const Attributes& attributes = {}) {
  const Input valid{{DType::i64, Shape()}, {double(logits.type.shape[0])}};
  const Input one{{logits.type.dtype, Shape()}, {1}};
  return {computed(op, {logits, labels, valid}, attributes)[0],
          computed(gradient_op, {one, logits, labels, valid}, attributes)};
}

Loss binary(double logit, double target) {
  const TensorType type{DType::f32, Shape{1, 1}};
  return loss_of(Op::binary_cross_entropy, Op::binary_cross_entropy_gradient, {type, {logit}},
                 {type, {target}});
}

TEST_F(BinaryCrossEntropy, has_the_values_of_the_vectors) {
  EXPECT_NEAR(binary(0, 0).mean, 0.69314718, allowed(1e-7, 2e-7));
  EXPECT_EQ(binary(100, 0).mean, 100);
  EXPECT_GE(binary(100, 1).mean, 0);
  EXPECT_LE(binary(100, 1).mean, allowed(3.8e-44, 5e-44));
  EXPECT_EQ(binary(-100, 1).mean, 100);
  EXPECT_EQ(binary(1000, 1).mean, 0);
  EXPECT_NEAR(binary(2, 0.9).mean, 0.32692801, allowed(1e-7, 3e-7));
  EXPECT_NEAR(binary(2, 0.9).gradient[0], -0.01920292, allowed(1e-7, 3e-7));
}

Loss cross(const std::vector<double>& logits, double label, double smoothing) {
  const auto classes = static_cast<std::int64_t>(logits.size());
  return loss_of(Op::cross_entropy, Op::cross_entropy_gradient,
                 {{DType::f32, Shape{1, classes}}, logits}, {{DType::i64, Shape{1}}, {label}},
                 {{"smoothing", smoothing}});
}

TEST_F(CrossEntropy, has_the_values_of_the_vectors) {
  const Loss plain = cross({2, 1, 0.1}, 0, 0);
  EXPECT_NEAR(plain.mean, 0.41703002, allowed(1e-7, 4e-7));
  expect_near(plain.gradient, {-0.34099886, 0.24243297, 0.09856589}, allowed(1e-7, 3e-7));
  const Loss smoothed = cross({2, 1, 0.1}, 0, 0.1);
  EXPECT_NEAR(smoothed.mean, 0.51369668, allowed(1e-7, 4e-7));
  expect_near(smoothed.gradient, {-0.27433219, 0.20909964, 0.06523256}, allowed(1e-7, 3e-7));
  EXPECT_NEAR(cross(std::vector<double>(1000, 0.5), 7, 0).mean, 6.90775528, 2e-6);
  EXPECT_EQ(cross({1000, 0}, 0, 0).mean, 0);
  EXPECT_EQ(cross({1000, 0}, 1, 0).mean, 1000);
  EXPECT_NEAR(cross({1000, 0}, 1, 0.1).mean, 950, 1e-4);
}

TEST_F(Gelu, is_the_exact_one) {
  for (const DType dtype : {widest_float(), DType::f32}) {
    const double error = dtype == DType::f64 ? 5e-9 : allowed(2e-7, 6e-7);
    const TensorType type{dtype, Shape{1, 4}};
    const auto values = computed(Op::gelu, {{type, {-5, -1, 1, 3}}});
    expect_near(values, {-1.43326e-6, -0.15865525, 0.84134475, 2.99595031}, error);
    // What is left of 1 - 1 far from 0, where the form with tanh has nothing like it.
    EXPECT_NEAR(values[0], -1.43326e-6, dtype == DType::f64 ? 5e-12 : 5e-10);
    expect_near(computed(Op::gelu_gradient, {{type, {1}}, {type, {0, 1, -1, 0}}}),
                {0.5, 1.08331547, -0.08331547, 0.5}, error);
  }
}

// GPUs have products of fp8 of sixteen columns, with an e4m3 among their operands.
constexpr std::int64_t kColumns = 16;
Attributes products_in(DType format) {
  return {{"transpose_b", true},
          {"math_a", format},
          {"math_b", bytes_of(format) == 1 ? DType::e4m3 : format}};
}

/// One number as a product whose first operand is of that format takes it, beside a largest
/// one.
double rounded_beside(DType format, double value, double largest) {
  const Input row{{DType::f32, Shape{1, 2}}, {value, largest}};
  const Input one{{DType::f32, Shape{kColumns, 2}}, {1, 0}};
  return computed(Op::matmul, {row, one}, products_in(format))[0];
}

/// The same number; on a GPU the scales of both operands are multiplied first.
void expect_same(double got, double wanted) {
  EXPECT_NEAR(got, wanted, allowed(0, 8 * half_ulp(DType::f32) * std::abs(wanted)));
}

TEST_F(CurrentScaling, makes_the_largest_magnitude_that_of_the_format) {
  // Vector 21: an amax of 3 has the scale 149.33333, of 5 it has 89.6.
  for (const auto& [amax, scale] : {std::pair(3.0, 149.33333F), std::pair(5.0, 89.6F)}) {
    const float exact = 448.0F / static_cast<float>(amax);
    EXPECT_FLOAT_EQ(exact, scale);
    const float code = rounded(DType::e4m3, 0.7F * exact);
    expect_same(rounded_beside(DType::e4m3, 0.7F, amax), code * (1 / exact));
  }
}

TEST_F(CurrentScaling, is_by_1_of_an_operand_that_is_0_or_not_finite) {
  EXPECT_EQ(rounded_beside(DType::e4m3, 0, 0), 0);
  expect_same(rounded_beside(DType::e4m3, 17, kInf), 16);
  EXPECT_TRUE(std::isnan(rounded_beside(DType::e4m3, 17, NAN))) << "0 times NaN";
}

TEST_F(CurrentScaling, saturates_an_infinity_as_transformer_engine_does) {
  expect_same(rounded_beside(DType::e4m3, kInf, 1), 448);
  expect_same(rounded_beside(DType::e5m2, -kInf, 1), -57344);
}

TEST_F(Accumulation, of_4096_ones_is_4096_whatever_they_are_stored_as) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Input ones{{dtype, Shape{1, 4096}}, {1}};
    EXPECT_EQ(computed(Op::matmul, {ones, ones}, {{"transpose_b", true}})[0], 4096);
  }
  for (const DType math : {DType::tf32, DType::e4m3, DType::e5m2}) {
    const Input ones{{DType::bf16, Shape{1, 4096}}, {1}};
    const Input columns{{DType::bf16, Shape{kColumns, 4096}}, {1}};
    // Tensor cores of Hopper keep 14 bits of a sum of fp8 and cut terms off below it. A scaled
    // one times another is 448 * 448 = 49 * 2^12; beside a sum of 2^29 and more it is cut to
    // multiples of 2^16, by a 49th.
    EXPECT_NEAR(computed(Op::matmul, {ones, columns}, products_in(math))[0], 4096,
                math == DType::tf32 ? 0 : allowed(0, 4096.0 / 49));
  }
  const Input tenths{{DType::f16, Shape{1, 10000}}, {0.1}};
  const Input ones{{DType::f16, Shape{1, 10000}}, {1}};
  // 999.756 is between 999.5 and 1000, and nearly in their middle.
  EXPECT_NEAR(computed(Op::matmul, {tenths, ones}, {{"transpose_b", true}})[0], 1000,
              allowed(0, 0.5));
  const Input rows{{DType::f16, Shape{4096, 1}}, {1}};
  EXPECT_EQ(computed(Op::sum_to, {rows}, {{"shape", Shape{1}}})[0], 4096);
}

}  // namespace
}  // namespace halfwatt
