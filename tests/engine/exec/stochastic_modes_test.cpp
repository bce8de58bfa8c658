// The modes that round updated parameters by chance, from the row to the states.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/exec/cpu_run.h"
#include "engine/ops/builder.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/update.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kElements = 20'000;

/// A parameter in a mode, 1 at first, whose gradient is an input, and plain SGD.
class OneParameter {
 public:
  OneParameter(std::string_view mode, double rate, int parts = 1)
      : parts_(parts), run_(graphs(*precision_named(mode), rate, parts)) {
    run_.load("w", tensor_of({DType::f32, Shape{kElements}}, {1}));
    if (run_.states().has(std::string(kLossScale))) {
      run_.load(std::string(kLossScale), tensor_of({DType::f32, Shape()}, {1}));
    }
  }

  /// Steps with a gradient of 1, in equal parts, from the key `seed`.
  Tensor steps(int count, double seed = 7) {
    for (int step = 0; step < count; ++step) {
      run_.bind("g", {1.0 / parts_});
      const std::vector<double> key = {seed, static_cast<double>(++attempt_), 0};
      for (int part = 0; part < parts_; ++part) {
        run_.bind("random", key);
        run_.run();
      }
      if (parts_ > 1) {
        run_.bind("random", key, 1);
        run_.run(1);
      }
    }
    return run_.states().save("w");
  }

 private:
  static std::vector<Graph> graphs(const Precision& precision, double rate, int parts) {
    Optimizer optimizer;
    optimizer.kind = Optimizer::Kind::sgd;
    optimizer.rate = rate;
    optimizer.momentum = 0;
    optimizer.decay = 0;
    Graph model;
    Builder build(model);
    const Shape shape{kElements};
    build.read({"w", StateRole::parameter, {precision.parameter, shape}, {}, 0});
    model.set_result("gradient:w", build.input("g", {precision.gradient, shape}));
    if (parts == 1) {
      return {with_update(model, precision, optimizer)};
    }
    const Graph micro = with_accumulation(model, precision);
    return {micro, update_of(micro, precision, optimizer)};
  }

  int parts_;
  int attempt_ = 0;
  CpuRun run_;
};

double mean(const Tensor& tensor) {
  const std::vector<double> all = doubles(tensor);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

struct Mode {
  const char* nearest;
  const char* by_chance;
  DType dtype;
};

class StochasticMode : public testing::TestWithParam<Mode> {
 protected:
  // A quarter of what rounding to nearest below 1 can see.
  double rate() const { return half_ulp(GetParam().dtype) / 4; }
};

TEST_P(StochasticMode, moves_on_average_by_what_the_optimizer_says) {
  EXPECT_EQ(mean(OneParameter(GetParam().nearest, rate()).steps(50)), 1) << "stands still";
  const double moved = mean(OneParameter(GetParam().by_chance, rate()).steps(50));
  // 50 roundings, each by less than a unit, the mean of so many elements.
  const double unit = half_ulp(GetParam().dtype);
  const double deviation = unit * std::sqrt(50 / static_cast<double>(kElements));
  EXPECT_NEAR(moved, 1 - 50 * rate(), 5 * deviation);
}

TEST_P(StochasticMode, rounds_one_batch_as_it_rounds_its_micro_batches) {
  OneParameter whole(GetParam().by_chance, rate());
  OneParameter parts(GetParam().by_chance, rate(), 4);
  EXPECT_TRUE(same_bits(whole.steps(5), parts.steps(5)));
}

TEST_P(StochasticMode, is_the_same_bits_for_the_same_seed_and_others_for_another) {
  const Tensor one = OneParameter(GetParam().by_chance, rate()).steps(3, 7);
  EXPECT_TRUE(same_bits(one, OneParameter(GetParam().by_chance, rate()).steps(3, 7)));
  EXPECT_FALSE(same_bits(one, OneParameter(GetParam().by_chance, rate()).steps(3, 8)));
}

INSTANTIATE_TEST_SUITE_P(Modes,
                         StochasticMode,
                         testing::Values(Mode{"bf16", "bf16-sr", DType::bf16},
                                         Mode{"fp16", "fp16-sr", DType::f16}));

}  // namespace
}  // namespace halfwatt
