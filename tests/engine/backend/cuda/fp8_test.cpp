// Products of fp8 and their scales, on the GPU beside the CPU, which emulates them.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "engine/backend/cuda/checks.h"

namespace halfwatt {
namespace {

class Fp8 : public OnGpu {};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_F(Fp8, multiplies_as_the_cpu_does_whichever_side_is_transposed) {
  const struct {
    bool a, b;
    DType of_a, of_b;
  } kinds[] = {{false, true, DType::e4m3, DType::e4m3},   // forward
               {false, false, DType::e5m2, DType::e4m3},  // gradient of the input
               {true, false, DType::e5m2, DType::e4m3}};  // gradient of the weight
  for (const auto& [a, b, of_a, of_b] : kinds) {
    for (const std::int64_t rows : {1, 16, 197}) {
      const OpExample example = fp8_product(a, b, of_a, of_b, rows);
      SCOPED_TRACE(text(example));
      EXPECT_LE(fp8_error_of_tolerance(example), 1);
    }
  }
}

// A bias comes on top, of either dtype of result; with scales from before, the magnitudes of
// now come out, and what is not finite shows in them.
TEST_F(Fp8, adds_a_bias_and_says_the_largest_magnitudes_as_the_cpu_does) {
  for (const DType storage : {DType::bf16, DType::f32}) {
    for (const double odd : {0.5, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
      SCOPED_TRACE(std::string(text(storage)) + " " + std::to_string(odd));
      Graph graph;
      Builder build(graph);
      const TensorType scalar{DType::f32, Shape()};
      const Value out =
          build.add(Op::matmul,
                    {build.input("x", {storage, Shape{32, 48}}),
                     build.input("w", {storage, Shape{64, 48}}),
                     build.input("bias", {storage, Shape{64}}), build.input("scale_x", scalar),
                     build.input("scale_w", scalar)},
                    {{"transpose_b", true},
                     {"math_a", DType::e4m3},
                     {"math_b", DType::e4m3},
                     {"scaling", std::string("layer")},
                     {"margin", std::int64_t{0}},
                     {"algorithm", std::string("max")}});
      graph.set_result("y", out);
      graph.set_result("amax_x", Builder::output(out, 1));
      graph.set_result("amax_w", Builder::output(out, 2));
      const auto on = [&](std::unique_ptr<Backend> backend) {
        BackendRun run(std::move(backend), {graph});
        std::vector<double> x(32 * 48);
        for (std::size_t at = 0; at < x.size(); ++at) {
          x[at] = std::sin(static_cast<double>(at));
        }
        x[100] = odd;  // row 2
        std::vector<double> w(64 * 48);
        for (std::size_t at = 0; at < w.size(); ++at) {
          w[at] = std::cos(static_cast<double>(3 * at));
        }
        run.bind("x", x);
        run.bind("w", w);
        run.bind("scale_x", std::vector<double>{300});
        run.bind("scale_w", std::vector<double>{448});
        run.bind("bias", std::vector<double>{0.25});
        run.run();
        return std::array{run.numbers("y"), run.numbers("amax_x"), run.numbers("amax_w")};
      };
      const auto got = on(opened_gpu());
      const auto wanted = on(opened_cpu(0));
      for (std::size_t at = 0; at < wanted[0].size(); ++at) {
        ASSERT_EQ(std::isnan(got[0][at]), std::isnan(wanted[0][at])) << at;
        if (!std::isnan(wanted[0][at])) {
          ASSERT_NEAR(got[0][at], wanted[0][at], 0.01 + 0.01 * std::abs(wanted[0][at])) << at;
        }
      }
      for (const std::size_t amax : {1U, 2U}) {
        EXPECT_TRUE(got[amax][0] == wanted[amax][0] ||
                    (std::isnan(got[amax][0]) && std::isnan(wanted[amax][0])))
            << got[amax][0] << ' ' << wanted[amax][0];
      }
    }
  }
}

/// What op rescale makes of a history and a scale of 2.
struct Rescaled {
  std::vector<double> history, scale, amax;
};
Rescaled rescaled(std::unique_ptr<Backend> backend,
                  const std::vector<double>& history,
                  bool skip,
                  const std::string& algorithm) {
  Graph graph;
  Builder build(graph);
  const Value out = build.add(
      Op::rescale,
      {build.input("history", {DType::f32, Shape{static_cast<std::int64_t>(history.size())}}),
       build.input("scale", {DType::f32, Shape()}),
       build.input("skip", {DType::boolean, Shape()})},
      {{"format", DType::e4m3}, {"margin", std::int64_t{1}}, {"algorithm", algorithm}});
  graph.set_result("history", out);
  graph.set_result("scale", Builder::output(out, 1));
  graph.set_result("amax", Builder::output(out, 2));
  BackendRun run(std::move(backend), {graph});
  run.bind("history", history);
  run.bind("scale", std::vector<double>{2});
  const std::uint8_t flag = skip ? 1 : 0;
  run.session().bind(0, "skip",
                     {{DType::boolean, Shape()},
                      reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(&flag))});
  run.run();
  return {run.numbers("history"), run.numbers("scale"), run.numbers("amax")};
}

TEST_F(Fp8, moves_histories_and_scales_as_the_cpu_does) {
  std::vector<double> long_one(1024);
  for (std::size_t at = 0; at < long_one.size(); ++at) {
    long_one[at] = static_cast<double>(at * 37 % 1024);
  }
  const std::vector<std::vector<double>> histories = {
      {3, 1, 2}, {0, 5, 6}, {kNan, 1, 2}, {kInfinity, 1, 2}, {1, kNan, 2}, {7}, long_one};
  for (const auto& history : histories) {
    for (const bool skip : {false, true}) {
      for (const char* const algorithm : {"max", "most_recent"}) {
        SCOPED_TRACE(std::to_string(history[0]) + (skip ? " skipped " : " ") + algorithm);
        const Rescaled got = rescaled(opened_gpu(), history, skip, algorithm);
        const Rescaled wanted = rescaled(opened_cpu(0), history, skip, algorithm);
        const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
          return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
            return x == y || (std::isnan(x) && std::isnan(y));
          });
        };
        EXPECT_TRUE(same(got.history, wanted.history));
        EXPECT_TRUE(same(got.scale, wanted.scale)) << got.scale[0] << ' ' << wanted.scale[0];
        EXPECT_TRUE(same(got.amax, wanted.amax)) << got.amax[0] << ' ' << wanted.amax[0];
      }
    }
  }
}

TEST_F(Fp8, is_refused_for_columns_that_are_no_sixteens) {
  const OpExample example{
      Op::matmul,
      {number({16, 32}), number({40, 32})},
      {{"transpose_b", true}, {"math_a", DType::e4m3}, {"math_b", DType::e4m3}},
      32};
  const Graph graph = example_graph(example, DType::bf16);
  const Support support = opened_gpu()->target().support(graph, graph.size() - 1);
  EXPECT_EQ(support.kind, Support::Kind::refused);
  EXPECT_EQ(support.reason, "a product of fp8 of 40 columns, needs a multiple of 16");
}

}  // namespace
}  // namespace halfwatt
