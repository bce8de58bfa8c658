#include "engine/exec/op_examples.h"

#include <fmt/format.h>

#include <cmath>

#include "base/rng.h"

namespace halfwatt {
namespace {

using Kind = ExampleInput::Kind;

ExampleInput x(Shape shape) { return {Kind::number, shape, {}, false}; }
ExampleInput given(Shape shape) { return {Kind::given, shape, {}, false}; }
ExampleInput share(Shape shape) { return {Kind::share, shape, {}, false}; }
ExampleInput wide(Shape shape) { return {Kind::share, shape, {}, true}; }
ExampleInput log_sum(Shape shape) { return {Kind::log_sum, shape, {}, true}; }
ExampleInput integers(Shape shape, std::vector<std::int64_t> values) {
  return {Kind::integers, shape, std::move(values), false};
}
ExampleInput bytes(Shape shape) { return {Kind::bytes, shape, {}, false}; }
ExampleInput count(std::int64_t valid) { return integers(Shape(), {valid}); }
ExampleInput key() { return integers(Shape{3}, {7, 3, 40}); }

Attributes axis(std::int64_t at) { return {{"axis", at}}; }
Attributes slice(std::int64_t at, std::int64_t begin, std::int64_t count) {
  return {{"axis", at}, {"begin", begin}, {"count", count}};
}
Attributes dropped(double rate) { return {{"rate", rate}, {"path", std::string("drop")}}; }
Attributes strided(std::int64_t stride, std::int64_t padding) {
  return {{"stride", stride}, {"padding", padding}};
}
Attributes strided_to(std::int64_t stride,
                      std::int64_t padding,
                      Shape shape,
                      bool bias = false) {
  Attributes all = strided(stride, padding);
  all.set("shape", shape);
  if (bias) {
    all.set("bias", true);
  }
  return all;
}
Attributes normal(std::vector<double> means, std::vector<double> deviations) {
  return {{"mean", std::move(means)}, {"deviation", std::move(deviations)}};
}
Attributes to(Shape shape) { return {{"shape", shape}}; }

const Attributes kEps = {{"eps", 1e-6}};
const Attributes kPlain = {{"smoothing", 0.0}};
const Attributes kSmooth = {{"smoothing", 0.1}};

std::vector<OpExample> products() {
  const Attributes b = {{"transpose_b", true}};
  const Attributes a = {{"transpose_a", true}};
  const auto heads = [](std::int64_t count) { return Attributes{{"heads", count}}; };
  return {
      {Op::matmul, {x({1, 1}), x({1, 1})}, {}, 1},
      {Op::matmul, {x({3, 5}), x({5, 7})}, {}, 5},
      {Op::matmul, {x({2, 3, 17}), x({13, 17}), x({13})}, b, 17},
      {Op::matmul, {given({9, 4}), given({9, 6})}, a, 9},
      {Op::matmul, {x({33, 65}), x({65, 31}), x({31})}, {}, 65},
      {Op::attention, {x({1, 1, 6})}, heads(2), 1},
      {Op::attention, {x({2, 5, 18})}, heads(3), 5},
      {Op::attention, {x({1, 101, 12})}, heads(1), 101},
      {Op::attention_gradient,
       {given({2, 5, 6}), given({2, 5, 18}), given({2, 5, 6}), log_sum({2, 3, 5})},
       heads(3),
       10},
      {Op::attention_gradient,
       {given({1, 33, 8}), given({1, 33, 24}), given({1, 33, 8}), log_sum({1, 1, 33})},
       heads(1),
       41},
  };
}

// Patches, a usual kernel, one that skips, one that is no square and leaves a border out.
std::vector<OpExample> convolutions() {
  return {
      {Op::convolution, {x({2, 3, 6, 4}), x({5, 3, 2, 2}), x({5})}, strided(2, 0), 12},
      {Op::convolution, {x({2, 3, 7, 5}), x({4, 3, 3, 3}), x({4})}, strided(1, 1), 27},
      {Op::convolution, {x({1, 2, 9, 8}), x({3, 2, 3, 3})}, strided(2, 1), 18},
      {Op::convolution, {x({3, 4, 9, 10}), x({33, 4, 5, 3}), x({33})}, strided(3, 2), 60},
      {Op::convolution, {x({1, 1, 1, 1}), x({1, 1, 1, 1})}, strided(1, 0), 1},
      {Op::convolution_input_gradient,
       {given({2, 5, 3, 2}), given({5, 3, 2, 2})},
       strided_to(2, 0, {2, 3, 6, 4}),
       5},
      {Op::convolution_input_gradient,
       {given({1, 33, 4, 5}), given({33, 4, 5, 3})},
       strided_to(2, 2, {1, 4, 8, 8}),
       200},
      {Op::convolution_weight_gradient,
       {given({2, 5, 3, 2}), given({2, 3, 6, 4})},
       strided_to(2, 0, {5, 3, 2, 2}, true),
       12},
      {Op::convolution_weight_gradient,
       {given({3, 33, 4, 5}), given({3, 4, 8, 8})},
       strided_to(2, 2, {33, 4, 5, 3}),
       60},
  };
}

std::vector<OpExample> reductions() {
  return {
      {Op::layer_norm, {x({3, 1, 5}), x({5}), x({5})}, kEps, 5},
      {Op::layer_norm, {x({7, 33}), x({33}), x({33})}, kEps, 33},
      {Op::add_layer_norm, {x({3, 5}), x({3, 5}), x({5}), x({5})}, kEps, 5, 1},
      {Op::add_layer_norm, {x({2, 3, 33}), x({2, 3, 33}), x({33}), x({33})}, kEps, 33, 1},
      {Op::layer_norm_gradient,
       {given({9, 33}), given({9, 33}), given({33}), wide({9}), wide({9})},
       {},
       33},
      {Op::layer_norm_gradient,
       {given({5, 9}), given({5, 9}), given({9}), wide({5}), wide({5}), given({5, 9})},
       {},
       9},
      {Op::cross_entropy, {x({3, 4}), integers({3}, {1, 3, 0}), count(3)}, kPlain, 4},
      {Op::cross_entropy, {x({5, 11}), integers({5}, {1, 3, 10, 0, 0}), count(3)}, kSmooth, 11},
      {Op::cross_entropy_gradient,
       {given({}), given({5, 11}), integers({5}, {1, 3, 10, 0, 0}), count(3)},
       kSmooth,
       11},
      {Op::binary_cross_entropy, {x({3, 1}), share({3, 1}), count(3)}, {}, 3},
      {Op::binary_cross_entropy, {x({5, 3}), share({5, 3}), count(4)}, {}, 15},
      {Op::binary_cross_entropy_gradient,
       {given({}), given({5, 3}), share({5, 3}), count(4)},
       {},
       1},
      {Op::mean, {x({3, 7, 5})}, axis(1), 7},
      {Op::mean, {x({1, 3})}, axis(0), 1},
      {Op::sum_to, {x({3, 7, 5})}, to({5}), 21},
      {Op::sum_to, {x({3, 7, 5})}, to({1, 7, 5}), 3},
      {Op::sum_to, {x({67, 3})}, to({3}), 67},
      {Op::sum_to, {x({3, 7, 5})}, to({3, 1, 5}), 7},
      {Op::sum_to, {x({3, 7, 5})}, to({3, 1, 1}), 35},
  };
}

std::vector<OpExample> elementwise() {
  // ImageNet's, as floats.
  const Attributes coloured = normal({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F});
  return {
      {Op::cast, {x({3, 5})}, {{"to", DType::f64}}},
      {Op::normalise, {bytes({2, 3, 4, 6})}, coloured},
      {Op::normalise, {bytes({3, 1, 5, 7})}, normal({0.5}, {0.25})},
      {Op::normalise, {bytes({2, 3, 72, 70})}, coloured},
      {Op::add, {x({5}), x({5})}, {}},
      {Op::add, {x({3, 4, 5}), x({4, 5})}, {}, 3},
      {Op::add, {x({3, 4, 5}), x({5})}, {}, 12},
      {Op::add, {x({3, 4, 5}), x({1, 4, 5})}, {}, 3},
      {Op::scale, {x({3, 5})}, {{"factor", 0.7}}},
      {Op::scale, {x({3, 5}), given({})}, {}},
      {Op::gelu, {x({1})}, {}},
      {Op::gelu, {x({3, 17})}, {}},
      {Op::gelu_gradient, {given({3, 17}), given({3, 17})}, {}},
      {Op::dropout, {x({5, 9}), key()}, dropped(0.4)},
      {Op::dropout, {x({2, 3, 1}), key()}, dropped(0)},
      {Op::drop_path, {x({8, 3, 5}), key()}, dropped(0.5)},
  };
}

std::vector<OpExample> moves() {
  return {
      {Op::reshape, {x({3, 4})}, to({2, 6})},
      {Op::expand, {x({1, 5})}, to({3, 5}), 3},
      {Op::expand, {x({3, 1, 5})}, to({3, 7, 5}), 7},
      {Op::slice, {x({3, 7, 5})}, slice(1, 2, 3)},
      {Op::slice, {x({3, 5})}, slice(0, 0, 1)},
      {Op::slice_gradient,
       {given({3, 2, 5})},
       {{"axis", std::int64_t{1}}, {"begin", std::int64_t{4}}, {"extent", std::int64_t{7}}}},
      {Op::concatenate, {x({3, 1, 5}), x({3, 4, 5})}, axis(1)},
      {Op::concatenate, {x({1, 3}), x({2, 3}), x({4, 3})}, axis(0)},
      {Op::transpose, {x({3, 4, 5})}, {}},
      {Op::transpose, {x({35, 70})}, {}},
      {Op::transfer, {x({3, 5})}, {{"from", std::int64_t{0}}}},
  };
}

std::vector<OpExample> all_examples() {
  std::vector<OpExample> all;
  for (auto&& part : {products(), convolutions(), reductions(), elementwise(), moves()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

const std::vector<OpExample>& op_examples() {
  static const std::vector<OpExample> examples = all_examples();
  return examples;
}

std::vector<double> example_values(const ExampleInput& input, std::uint64_t seed) {
  if (input.kind == Kind::integers) {
    return {input.values.begin(), input.values.end()};
  }
  Rng rng(seed);
  std::vector<double> values;
  for (std::int64_t at = 0; at < input.shape.elements(); ++at) {
    switch (input.kind) {
      case Kind::share:
        values.push_back(rng.uniform());
        break;
      case Kind::log_sum:
        values.push_back(3 + rng.uniform());
        break;
      case Kind::bytes:
        values.push_back(static_cast<double>(rng.next() % 256));
        break;
      default:
        values.push_back(rng.normal());
        break;
    }
  }
  return values;
}

TensorType example_type(const ExampleInput& input, DType dtype) {
  if (input.kind == Kind::integers) {
    return {DType::i64, input.shape};
  }
  if (input.kind == Kind::bytes) {
    return {DType::u8, input.shape};
  }
  return {input.is_wide && dtype != DType::f64 ? DType::f32 : dtype, input.shape};
}

std::string text(const OpExample& example) {
  std::string all(name_of(example.op));
  for (const ExampleInput& input : example.inputs) {
    all += " " + text(input.shape);
  }
  return all;
}

}  // namespace halfwatt
