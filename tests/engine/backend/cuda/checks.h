#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "engine/backend/cuda/gpu.h"
#include "engine/exec/example_run.h"
#include "engine/exec/micro_training.h"

// Checks of the GPU that its tests make, and that must see the faults of
// planted_faults_test.cpp. Each says its largest error, in units of its tolerance: more than 1
// is wrong.

namespace halfwatt {

constexpr double kNoEndOfIt = std::numeric_limits<double>::infinity();

inline ExampleInput number(Shape shape) {
  return {ExampleInput::Kind::number, std::move(shape), {}, false};
}

/// Of any output of an op against fp64 on the CPU.
inline double error_of_tolerance(const OpExample& example, DType storage) {
  try {
    double worst = 0;
    const std::vector<Tensor> inputs = stored_inputs(example, storage);
    const auto wanted = example_outputs(opened_cpu(0), example, DType::f64, inputs);
    const auto got = example_outputs(opened_gpu(), example, storage, inputs);
    for (std::size_t at = 0; at < got.size(); ++at) {
      const std::vector<double> exact = doubles(wanted[at]);
      const double between = 2 * example.stored_between * half_ulp(storage);
      const double bound = store_error(got[at].dtype(), exact) + sum_error(example) + between;
      worst = std::max(worst, off(doubles(got[at]), exact) / bound);
    }
    return worst;
  } catch (const std::exception& failure) {
    ADD_FAILURE() << failure.what();
    return kNoEndOfIt;
  }
}

/// Attention and its gradient on images of `tokens`, each with `heads` heads of `width`.
inline std::vector<OpExample> attentions(std::int64_t tokens,
                                         std::int64_t heads,
                                         std::int64_t width) {
  using Kind = ExampleInput::Kind;
  const Shape qkv{2, tokens, 3 * heads * width};
  const Shape out{2, tokens, heads * width};
  const ExampleInput log_sums{Kind::log_sum, Shape{2, heads, tokens}, {}, true};
  const Attributes attributes = {{"heads", heads}};
  const auto given = [](Shape shape) { return ExampleInput{Kind::given, shape, {}, false}; };
  // Tensor cores take weights of scores, and their slopes, as they are stored.
  return {{Op::attention, {given(qkv)}, attributes, static_cast<double>(tokens), 1},
          {Op::attention_gradient,
           {given(out), given(qkv), given(out), log_sums},
           attributes,
           static_cast<double>(tokens + width),
           1}};
}

/// A product of a layer of vit_tiny, with its bias.
inline OpExample product_of_layer() {
  return {Op::matmul,
          {number({2, 197, 192}), number({576, 192}), number({576})},
          {{"transpose_b", true}},
          192};
}

/// The gradient of its weight, and that of its bias.
inline OpExample weight_gradient_of_layer() {
  return {Op::matmul, {number({394, 192}), number({394, 576})}, {{"transpose_a", true}}, 394};
}
inline OpExample bias_gradient_of_layer() {
  return {Op::sum_to, {number({394, 576})}, {{"shape", Shape{576}}}, 394};
}

/// A product of so few terms that tf32 is far from fp32, with rows as tensor cores take them.
inline OpExample product_of_few_terms() {
  return {Op::matmul, {number({80, 32}), number({64, 32})}, {{"transpose_b", true}}, 32};
}

/// A product of fp8, whichever side lies transposed.
inline OpExample fp8_product(
    bool a_transposed, bool b_transposed, DType of_a, DType of_b, std::int64_t rows) {
  const std::int64_t m = a_transposed ? 48 : rows;
  const std::int64_t k = a_transposed ? rows : 80;
  return {Op::matmul,
          {number(a_transposed ? Shape{k, m} : Shape{m, k}),
           number(b_transposed ? Shape{96, k} : Shape{k, 96})},
          {{"transpose_a", a_transposed},
           {"transpose_b", b_transposed},
           {"math_a", of_a},
           {"math_b", of_b}},
          static_cast<double>(k)};
}

/// Of a product of fp8 against the CPU, which has the same codes; the GPU keeps some 14 bits of
/// a sum of e4m3.
inline double fp8_error_of_tolerance(const OpExample& example) {
  const std::vector<Tensor> inputs = stored_inputs(example, DType::bf16);
  const auto wanted = doubles(example_outputs(opened_cpu(0), example, DType::bf16, inputs)[0]);
  const auto got = doubles(example_outputs(opened_gpu(), example, DType::bf16, inputs)[0]);
  return off(got, wanted) / (2 * half_ulp(DType::bf16) + 0x1p-12);
}

/// What check_gradients says of three gradients, one of which has an `odd` element: whether one
/// is not finite, and which is the first.
inline std::array<double, 2> found_in_gradients(std::unique_ptr<Backend> backend,
                                                std::size_t odd_one,
                                                double odd) {
  constexpr std::array<std::int64_t, 3> kCounts = {5000, 64, 33};  // parts; whole eights; not
  Graph graph;
  Builder build(graph);
  std::vector<Value> gradients;
  for (std::size_t at = 0; at < kCounts.size(); ++at) {
    gradients.push_back(build.input(name_of("g", at), {DType::f16, Shape{kCounts[at]}}));
  }
  const Value found = build.add(Op::check_gradients, gradients);
  graph.set_result("found", found);
  graph.set_result("first_bad", Builder::output(found, 2));
  BackendRun run(std::move(backend), {graph});
  for (std::size_t at = 0; at < kCounts.size(); ++at) {
    std::vector<double> values(static_cast<std::size_t>(kCounts[at]), 0.5);
    values.back() = at == odd_one ? odd : 0.5;
    run.bind(name_of("g", at), values);
  }
  run.run();
  return {run.number("found"), run.number("first_bad")};
}

/// Of what is found wherever it is; exact, so 0 or without end.
inline double error_of_found() {
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), kNoEndOfIt, 0.25}) {
    for (const std::size_t odd_one : {0U, 1U, 2U}) {
      if (found_in_gradients(opened_gpu(), odd_one, odd) !=
          found_in_gradients(opened_cpu(0), odd_one, odd)) {
        return kNoEndOfIt;
      }
    }
  }
  return 0;
}

/// Of the copies that products read, after steps of a training; exact, so 0 or without end.
inline double error_of_copies(const std::string& mode) {
  MicroTraining training;
  training.mode = mode;
  training.optimizer.rate = 0.01;
  MicroRun micro(training, opened_gpu());
  for (int step = 1; step <= 3; ++step) {
    micro.step(step);
  }
  const auto copies = copies_of(micro.run().states());
  EXPECT_FALSE(copies.empty()) << mode;
  const bool all =
      std::all_of(copies.begin(), copies.end(), [](const auto& copy) { return copy.second; });
  return all ? 0 : kNoEndOfIt;
}

}  // namespace halfwatt
