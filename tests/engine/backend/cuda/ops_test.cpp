// Every op of the table, on the GPU against fp64 on the CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>

#include "engine/backend/cuda/checks.h"

namespace halfwatt {
namespace {

class Ops : public OnGpu {};

bool is_refused(const OpExample& example, DType storage) {
  const auto backend = opened_gpu();
  const Graph graph = example_graph(example, storage);
  return backend->target().support(graph, graph.size() - 1).kind == Support::Kind::refused;
}

TEST_F(Ops, are_within_their_rounding_of_fp64_on_the_same_numbers) {
  double worst = 0;
  std::string worst_of;
  for (const OpExample& example : op_examples()) {
    for (const DType storage : {DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(text(example) + " " + std::string(text(storage)));
      if (is_refused(example, storage)) {
        EXPECT_EQ(example.op, Op::transfer);  // of one device alone there is none
        continue;
      }
      const double share = error_of_tolerance(example, storage);
      EXPECT_LE(share, 1);
      if (share > worst) {
        worst = share;
        worst_of = text(example) + " " + std::string(text(storage));
      }
    }
  }
  std::cout << "largest error / tolerance: " << worst << ", " << worst_of << '\n';
  RecordProperty("error_of_tolerance", std::to_string(worst));
}

TEST_F(Ops, have_the_same_bits_when_they_run_again) {
  for (const OpExample& example : op_examples()) {
    for (const DType storage : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(text(example) + " " + std::string(text(storage)));
      if (is_refused(example, storage)) {
        continue;
      }
      const std::vector<Tensor> inputs = stored_inputs(example, storage);
      const auto first = example_outputs(opened_gpu(), example, storage, inputs);
      const auto second = example_outputs(opened_gpu(), example, storage, inputs);
      for (std::size_t at = 0; at < first.size(); ++at) {
        EXPECT_TRUE(same_bits(first[at], second[at])) << "output " << at;
      }
    }
  }
}

// The same operations, each rounded by itself; all bytes are in the last of them.
TEST_F(Ops, normalise_bytes_to_the_bits_of_the_cpu) {
  for (const OpExample& example : op_examples()) {
    if (example.op == Op::normalise) {
      const std::vector<Tensor> inputs = stored_inputs(example, DType::f32);
      EXPECT_TRUE(same_bits(example_outputs(opened_gpu(), example, DType::f32, inputs)[0],
                            example_outputs(opened_cpu(0), example, DType::f32, inputs)[0]))
          << text(example);
    }
  }
}

// One pass over the mean loses what the row has in common; section 3 of the facts on mixed
// precision, vector 14.
TEST_F(Ops, norm_a_constant_row_to_exactly_beta) {
  for (const std::int64_t width : {192, 768, 1024}) {
    Graph graph;
    Builder build(graph);
    const TensorType row{DType::f32, Shape{width}};
    const Value x = build.input("x", {DType::f32, Shape{3, width}});
    const Value y =
        build.add(Op::layer_norm, {x, build.input("gamma", row), build.input("beta", row)},
                  {{"eps", 1e-6}});
    graph.set_result("y", y);
    BackendRun run(opened_gpu(), {graph});
    run.bind("x", std::vector<double>{1000.1});
    run.bind("gamma", std::vector<double>{1});
    run.bind("beta", std::vector<double>{0.25});
    run.run();
    for (const double each : run.numbers("y")) {
      ASSERT_EQ(each, 0.25) << width;
    }
  }
}

// Blocks of four and of seven warps, heads that fill their tiles and such that do not, tokens
// that end within sixteen and at its end; rows of 20 and 90 are not for tensor cores in any
// format.
TEST_F(Ops, attend_at_any_number_of_tokens_and_width_of_heads) {
  for (const std::int64_t tokens : {1, 16, 50, 64, 81, 112, 197, 257}) {
    for (const std::int64_t width : {20, 21, 24, 32, 50, 64, 80, 90, 96}) {
      for (const OpExample& example : attentions(tokens, 3, width)) {
        for (const DType storage : {DType::f32, DType::bf16, DType::f16}) {
          SCOPED_TRACE(text(example) + " " + std::string(text(storage)));
          EXPECT_LE(error_of_tolerance(example, storage), 1);
        }
      }
    }
  }
}

// Where a card adds up in fp32 all the same it is only nearer.
TEST_F(Ops, add_up_in_f16_where_they_may_within_its_rounding) {
  const auto number = [](Shape shape) {
    return ExampleInput{ExampleInput::Kind::number, shape, {}, false};
  };
  for (const std::int64_t rows : {1, 197}) {
    for (const std::int64_t width : {80, 768}) {
      const OpExample example{
          Op::matmul,
          {number(Shape{rows, width}), number(Shape{96, width}), number(Shape{96})},
          {{"transpose_b", true}, {"accumulate", DType::f16}},
          static_cast<double>(width)};
      SCOPED_TRACE(text(example));
      const std::vector<Tensor> inputs = stored_inputs(example, DType::f16);
      const auto wanted =
          doubles(example_outputs(opened_cpu(0), example, DType::f16, inputs)[0]);
      const auto got = doubles(example_outputs(opened_gpu(), example, DType::f16, inputs)[0]);
      EXPECT_LE(off(got, wanted), 16 * half_ulp(DType::f16));
    }
  }
}

// In f32, where tf32 is allowed: products have 10 bits of their operands.
TEST_F(Ops, attend_in_tf32_within_its_rounding) {
  double worst = 0;
  for (const std::int64_t tokens : {1, 50, 197}) {
    for (const std::int64_t width : {24, 32, 64}) {
      for (OpExample example : attentions(tokens, 3, width)) {
        SCOPED_TRACE(text(example));
        example.attributes.set("math_a", DType::tf32);
        const std::vector<Tensor> inputs = stored_inputs(example, DType::f32);
        const auto exact =
            doubles(example_outputs(opened_cpu(0), example, DType::f64, inputs)[0]);
        const auto got = doubles(example_outputs(opened_gpu(), example, DType::f32, inputs)[0]);
        // Operands of both products and what is between them.
        const double share = off(got, exact) / (8 * half_ulp(DType::tf32));
        EXPECT_LE(share, 1);
        worst = std::max(worst, share);
      }
    }
  }
  EXPECT_GT(worst, 0.01) << "it was not computed in tf32";
  RecordProperty("error_of_tolerance", std::to_string(worst));
}

// What is no number spoils what it is part of, and nothing else; a score of minus infinity is a
// weight of 0.
TEST_F(Ops, attend_to_keys_that_are_no_numbers_as_the_cpu_does) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t kTokens = 70;
  constexpr std::int64_t kWidth = 64;
  for (const DType storage : {DType::f32, DType::bf16, DType::f16}) {
    for (const double odd : {kNan, kInfinity, -kInfinity, 6e4}) {
      SCOPED_TRACE(std::string(text(storage)) + " " + std::to_string(odd));
      const OpExample example = attentions(kTokens, 2, kWidth).front();
      std::vector<Tensor> inputs = stored_inputs(example, storage);
      std::vector<double> values = doubles(inputs[0]);
      values[static_cast<std::size_t>(5 * 6 * kWidth + 2 * kWidth + 3)] = odd;  // a key, head 0
      inputs[0] = tensor_of(inputs[0].type(), values);
      const auto wanted =
          doubles(example_outputs(opened_cpu(0), example, DType::f64, inputs)[0]);
      const auto got = doubles(example_outputs(opened_gpu(), example, storage, inputs)[0]);
      for (std::size_t at = 0; at < got.size(); ++at) {
        ASSERT_EQ(std::isfinite(got[at]), std::isfinite(wanted[at])) << at;
        if (std::isfinite(wanted[at])) {
          ASSERT_NEAR(got[at], wanted[at], 0.05) << at;
        }
      }
    }
  }
}

TEST_F(Ops, spread_what_is_no_number_in_a_gradient_of_attention_as_the_cpu_does) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t kWidth = 64;
  for (const DType storage : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(text(storage));
    const OpExample example = attentions(70, 2, kWidth).back();
    std::vector<Tensor> inputs = stored_inputs(example, storage);
    std::vector<double> values = doubles(inputs[1]);
    values[static_cast<std::size_t>(5 * 6 * kWidth + 2 * kWidth + 3)] = kNan;  // a key, head 0
    inputs[1] = tensor_of(inputs[1].type(), values);
    const auto wanted = doubles(example_outputs(opened_cpu(0), example, DType::f64, inputs)[0]);
    const auto got = doubles(example_outputs(opened_gpu(), example, storage, inputs)[0]);
    for (std::size_t at = 0; at < got.size(); ++at) {
      ASSERT_EQ(std::isfinite(got[at]), std::isfinite(wanted[at])) << at;
    }
  }
}

// A product of a layer of vit_tiny, its norm, its sums.
TEST_F(Ops, are_right_at_the_sizes_of_a_model) {
  const std::vector<OpExample> examples = {
      product_of_layer(),
      product_of_few_terms(),
      weight_gradient_of_layer(),
      bias_gradient_of_layer(),
      // A gradient of weights sums over all tokens of a batch, and may be split.
      {Op::matmul, {number({20000, 24}), number({20000, 40})}, {{"transpose_a", true}}, 20000},
      {Op::layer_norm,
       {number({394, 192}), number({192}), number({192})},
       {{"eps", 1e-6}},
       192},
      {Op::layer_norm_gradient,
       {number({394, 768}),
        number({394, 768}),
        number({768}),
        {ExampleInput::Kind::share, Shape{394}, {}, true},
        {ExampleInput::Kind::share, Shape{394}, {}, true},
        number({394, 768})},
       {},
       768,
       1},
      {Op::gelu_gradient, {number({394, 768}), number({394, 768})}, {}, 1},
  };
  for (const OpExample& example : examples) {
    for (const DType storage : {DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(text(example) + " " + std::string(text(storage)));
      EXPECT_LE(error_of_tolerance(example, storage), 1);
    }
  }
}

TEST_F(Ops, find_the_first_gradient_that_is_not_finite) { EXPECT_EQ(error_of_found(), 0); }

// Which algorithm is the fastest is measured, and may be another one the next time; what was
// chosen is kept, so that the bits are the same all the same.
TEST_F(Ops, take_the_fastest_product_and_the_same_one_again) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "halfwatt_chosen_products.txt";
  std::filesystem::remove(file);
  CudaOptions options;
  options.choices = file;
  const OpExample example = weight_gradient_of_layer();
  for (const DType storage : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(text(storage));
    const std::vector<Tensor> inputs = stored_inputs(example, storage);
    const auto exact = example_outputs(opened_cpu(0), example, DType::f64, inputs);
    const auto first = example_outputs(opened_gpu(options), example, storage, inputs);
    const auto second = example_outputs(opened_gpu(options), example, storage, inputs);
    EXPECT_TRUE(same_bits(first[0], second[0]));
    EXPECT_LE(off(doubles(first[0]), doubles(exact[0])),
              store_error(storage, doubles(exact[0])) + sum_error(example));
  }
  std::ifstream in(file);
  const std::string kept((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(std::count(kept.begin(), kept.end(), ':'), 3) << kept;
}

}  // namespace
}  // namespace halfwatt
