// Convolutions through the backend: what no table of examples says.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "engine/exec/cpu_run.h"
#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

Attributes strided(std::int64_t stride, std::int64_t padding) {
  return {{"stride", stride}, {"padding", padding}};
}

std::vector<double> normal(std::int64_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values(static_cast<std::size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return rng.normal(); });
  return values;
}

struct Case {
  Shape image;    // [C, H, W]
  Shape weights;  // [O, C, R, S]
  std::int64_t stride, padding;
};

const std::vector<Case> kCases = {{Shape{3, 32, 32}, Shape{48, 3, 8, 8}, 8, 0},
                                  {Shape{3, 15, 18}, Shape{20, 3, 3, 3}, 1, 1},
                                  {Shape{16, 9, 9}, Shape{33, 16, 3, 3}, 2, 1}};

/// Outputs, and the gradient of the images where they are taken for one of the outputs.
struct Both {
  Tensor outputs;
  Tensor gradient;
};

// Of images `first` to `first + count` of the same ten.
Both computed(
    const Case& one, DType dtype, std::int64_t first, std::int64_t count, int threads) {
  constexpr std::int64_t kAll = 10;
  Graph graph;
  Builder build(graph);
  const Shape images{count, one.image[0], one.image[1], one.image[2]};
  const Value x = build.input("x", {dtype, images});
  const Value weights = build.input("weights", {dtype, one.weights});
  const Value bias = build.input("bias", {dtype, Shape{one.weights[0]}});
  const Value y =
      build.add(Op::convolution, {x, weights, bias}, strided(one.stride, one.padding));
  const Shape outputs = build.type(y).shape;
  const Value dy = build.input("dy", {dtype, outputs});
  Attributes of_images = strided(one.stride, one.padding);
  of_images.set("shape", images);
  graph.set_result("y", y);
  graph.set_result("dx", build.add(Op::convolution_input_gradient, {dy, weights}, of_images));
  CpuRun run(graph, threads);
  const auto part = [&](std::int64_t each, std::uint64_t seed) {
    const std::vector<double> all = normal(kAll * each, seed);
    return std::vector<double>(all.begin() + first * each,
                               all.begin() + (first + count) * each);
  };
  run.bind("x", part(one.image.elements(), 1));
  run.bind("dy", part(outputs.elements() / count, 2));
  run.bind("weights", normal(one.weights.elements(), 3));
  run.bind("bias", normal(one.weights[0], 4));
  run.run();
  return {run.result("y"), run.result("dx")};
}

bool is_part(const Tensor& part, const Tensor& whole, std::size_t at) {
  const auto few = part.view().bytes();
  const auto all = whole.view().bytes();
  return std::equal(few.begin(), few.end(),
                    all.begin() + static_cast<std::ptrdiff_t>(at * few.size()));
}

TEST(Convolution, of_an_image_has_the_same_bits_alone_as_in_any_batch_on_any_threads) {
  for (const Case& one : kCases) {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(text(one.weights) + " " + std::string(text(dtype)));
      const Both ten = computed(one, dtype, 0, 10, 2);
      for (const std::int64_t image : {0, 3, 9}) {
        for (const int threads : {1, 2, 3}) {
          const Both alone = computed(one, dtype, image, 1, threads);
          const auto at = static_cast<std::size_t>(image);
          EXPECT_TRUE(is_part(alone.outputs, ten.outputs, at)) << image << " " << threads;
          EXPECT_TRUE(is_part(alone.gradient, ten.gradient, at)) << image << " " << threads;
        }
      }
    }
  }
}

// 1 + 2^-11 is halfway between two numbers of tf32.
TEST(Convolution, rounds_its_operands_to_the_format_that_it_is_told) {
  Graph graph;
  Builder build(graph);
  const Value x = build.input("x", {DType::f32, Shape{1, 1, 2, 2}});
  const Value weights = build.input("weights", {DType::f32, Shape{1, 1, 1, 1}});
  Attributes rounded = strided(1, 0);
  rounded.set("math_a", DType::tf32);
  rounded.set("math_b", DType::tf32);
  graph.set_result("plain", build.add(Op::convolution, {x, weights}, strided(1, 0)));
  graph.set_result("rounded", build.add(Op::convolution, {x, weights}, rounded));
  const auto backend = open_cpu();
  const auto support = [&](std::string_view result) {
    return (*backend)->target().support(graph, graph.result(result)->node).kind;
  };
  EXPECT_EQ(support("plain"), Support::Kind::native);
  EXPECT_EQ(support("rounded"), Support::Kind::emulated);
  CpuRun run(graph);
  run.bind("x", {1 + 0x1p-11, 1 + 0x1.8p-11, 1, 2});
  run.bind("weights", {1});
  run.run();
  EXPECT_EQ(run.numbers("plain"), (std::vector<double>{1 + 0x1p-11, 1 + 0x1.8p-11, 1, 2}));
  EXPECT_EQ(run.numbers("rounded"), (std::vector<double>{1, 1 + 0x1p-10, 1, 2}));
}

}  // namespace
}  // namespace halfwatt
