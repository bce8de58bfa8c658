// Section 3 of the facts on mixed precision, vectors 10, 11, 12 and 22, through the backend;
// of the CPU and, in the tests of its room, of a GPU.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/exec/vectors_device.h"
#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

using Adamw = OnVectorsDevice;
using AdamwInHalf = OnVectorsDevice;
using SgdInHalf = OnVectorsDevice;
using Stagnation = OnVectorsDevice;
using StochasticRounding = OnVectorsDevice;
using Clipping = OnVectorsDevice;

struct Case {
  Op op = Op::adamw;
  DType stored = widest_float();  ///< parameter and gradient
  DType moment = widest_float();
  DType math = widest_float();
  double parameter = 1;
  double rate = 1e-3;
  double decay = 0.01;
  double eps = 1e-8;
  double momentum = 0;
  std::int64_t elements = 1;
  bool stochastic = false;
};

/// One parameter and its optimizer, nothing else.
class OneParameter {
 public:
  explicit OneParameter(const Case& test)
      : test_(test), run_(vectors_backend(), {graph(test)}) {
    run_.load("p", tensor_of({test.stored, Shape{test.elements}}, {test.parameter}));
    run_.bind("factor", {1});
    run_.bind("rate", {test.rate});
    run_.bind("skip", {0});
  }

  /// Steps with a gradient; the first parameter after it.
  double step(double gradient) {
    run_.bind("g", {gradient});
    run_.bind("applied", {static_cast<double>(steps_)});
    run_.bind("random", {1, static_cast<double>(++steps_), 0});
    run_.run();
    return run_.state("p")[0];
  }
  double steps(int count, double gradient) {
    double last = 0;
    for (int at = 0; at < count; ++at) {
      last = step(gradient);
    }
    return last;
  }
  BackendRun& run() { return run_; }

  static Graph graph(const Case& test) {
    Graph graph;
    Builder build(graph);
    const Shape shape{test.elements};
    const auto moment = [&](const char* name) {
      return build.read({name, StateRole::moment, {test.moment, shape}, "p", 0});
    };
    std::vector<Value> inputs = {
        build.read({"p", StateRole::parameter, {test.stored, shape}, {}, 0})};
    inputs.push_back(moment("m"));
    if (test.op == Op::adamw) {
      inputs.push_back(moment("v"));
    }
    inputs.push_back(build.input("g", {test.stored, shape}));
    inputs.push_back(build.input("factor", {widest_float(), Shape()}));
    inputs.push_back(build.input("rate", {widest_float(), Shape()}));
    inputs.push_back(build.input("applied", {DType::i64, Shape()}));
    inputs.push_back(build.input("skip", {DType::boolean, Shape()}));
    Attributes attributes = {{"decay", test.decay}, {"math", test.math}};
    if (test.op == Op::adamw) {
      attributes.set("beta1", 0.9);
      attributes.set("beta2", 0.999);
      attributes.set("eps", test.eps);
    } else {
      attributes.set("momentum", test.momentum);
    }
    if (test.stochastic) {
      inputs.push_back(build.input("random", {DType::i64, Shape{3}}));
      attributes.set("path", std::string("p"));
    }
    const Value after = build.add(test.op, inputs, attributes);
    const int outputs = static_cast<int>(graph.node(after.node).outputs.size());
    graph.set_result("tally", Builder::output(after, outputs - 1));
    build.write("p", after);
    build.write("m", Builder::output(after, 1));
    if (test.op == Op::adamw) {
      build.write("v", Builder::output(after, 2));
    }
    return graph;
  }

  double unchanged() { return run_.numbers("tally")[1]; }

 private:
  Case test_;
  BackendRun run_;
  std::int64_t steps_ = 0;
};

// GPUs compute it in fp32.
TEST_F(Adamw, is_that_of_pytorch_in_double) {
  const double error = allowed(5e-11, 2e-7);
  const double error_of_m = allowed(1e-17, 4e-9);
  const double error_of_v = allowed(1e-19, 2e-11);
  OneParameter one({});
  EXPECT_NEAR(one.step(0.1), 0.9989900001, error);
  EXPECT_NEAR(one.run().state("m")[0], 0.01, error_of_m);
  EXPECT_NEAR(one.run().state("v")[0], 1e-5, error_of_v);
  EXPECT_NEAR(one.step(-0.2), 0.9993461137, error);
  EXPECT_NEAR(one.run().state("m")[0], -0.011, error_of_m);
  EXPECT_NEAR(one.run().state("v")[0], 4.999e-5, error_of_v);
  EXPECT_NEAR(OneParameter({}).step(1e-9), 0.9998990909, error);
  EXPECT_NEAR(OneParameter({}).step(0), 0.99999, allowed(1e-15, 2e-7));
}

Case half(double eps) {
  Case test;
  test.stored = test.moment = test.math = DType::f16;
  test.parameter = 0.02;
  test.eps = eps;
  return test;
}

/// `value` as f16, which vectors print with six digits or so.
double f16(double value) { return static_cast<double>(rounded(DType::f16, float(value))); }

TEST_F(AdamwInHalf, dies_of_small_gradients_at_its_first_step) {
  EXPECT_TRUE(std::isnan(OneParameter(half(1e-8)).step(0)));
  for (const double gradient : {1e-5, 1e-4, 1e-3, 5e-3}) {
    EXPECT_EQ(OneParameter(half(1e-8)).step(gradient), -INFINITY) << gradient;
  }
}

TEST_F(AdamwInHalf, is_to_the_bit_what_pytorch_makes_of_large_ones) {
  EXPECT_EQ(OneParameter(half(1e-8)).step(6e-3), f16(0.019226));
  EXPECT_EQ(OneParameter(half(1e-8)).step(0.1), f16(0.0190125));
}

TEST_F(AdamwInHalf, lives_with_an_eps_that_half_can_hold) {
  EXPECT_EQ(OneParameter(half(1e-4)).step(0), f16(0.020004));
  EXPECT_EQ(OneParameter(half(1e-4)).step(1e-3), f16(0.0100021));
  EXPECT_EQ(OneParameter(half(1e-4)).step(5e-3), f16(-0.030014));
}

// torch.optim.SGD of torch 2.11 on a processor, parameter, gradient and momentum f16, foreach
// off; rate 1/8 and decay 1/64, which f16 holds, since there, but not on a GPU, what an
// addition multiplies with is rounded, too. In fp32, rounded where it is stored, the parameters
// are 0.70361328125, 0.5078125 and 0.23046875.
TEST_F(SgdInHalf, is_to_the_bit_that_of_pytorch) {
  Case test = half(1e-8);
  test.op = Op::sgd;
  test.parameter = 0.85;
  test.rate = 0.125;
  test.decay = 0.015625;
  test.momentum = 0.9;
  OneParameter one(test);
  EXPECT_EQ(one.step(1.16), 0.703125);
  EXPECT_EQ(one.run().state("m")[0], 1.173828125);
  EXPECT_EQ(one.step(0.5), 0.50732421875);
  EXPECT_EQ(one.run().state("m")[0], 1.5673828125);
  EXPECT_EQ(one.step(0.8), 0.22998046875);
  EXPECT_EQ(one.run().state("m")[0], 2.21875);
}

/// p = 1 in a format, each step taking `step` from it, computed in fp32.
Case stepping(DType stored, double step) {
  Case test;
  test.op = Op::sgd;
  test.stored = stored;
  test.moment = test.math = DType::f32;
  test.rate = step;
  test.decay = 0;
  return test;
}

TEST_F(Stagnation, loses_steps_below_half_a_unit_of_the_format) {
  EXPECT_EQ(OneParameter(stepping(DType::bf16, 1e-3)).steps(100, 1), 1.0);
  EXPECT_EQ(OneParameter(stepping(DType::bf16, 5e-3)).steps(100, -1), 1.78125);
  EXPECT_EQ(OneParameter(stepping(DType::f16, 2e-4)).steps(1000, 1), 1.0);
  EXPECT_EQ(OneParameter(stepping(DType::f16, 3e-4)).steps(1000, 1), 0.51171875);
}

TEST_F(Stagnation, is_counted_by_what_is_stored) {
  Case test = stepping(DType::bf16, 1e-3);
  test.elements = 70'000;  // more than one part
  OneParameter lost(test);
  lost.step(1);
  EXPECT_EQ(lost.unchanged(), 70'000);
  test.rate = 5e-3;
  OneParameter seen(test);
  seen.step(-1);
  EXPECT_EQ(seen.unchanged(), 0);
}

TEST_F(Stagnation, a_parameter_that_leaves_its_format_is_counted_as_not_finite) {
  Case test = stepping(DType::f16, 1e5);
  OneParameter gone(test);
  EXPECT_EQ(gone.step(-1), INFINITY);
  EXPECT_EQ(gone.run().numbers("tally")[0], 1);
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double each : values) {
    sum += each;
  }
  return sum / static_cast<double>(values.size());
}

TEST_F(StochasticRounding, moves_on_average_where_rounding_to_nearest_stands_still) {
  constexpr std::int64_t kElements = 20'000;
  for (const DType stored : {DType::bf16, DType::f16}) {
    for (const Op op : {Op::sgd, Op::adamw}) {
      // A step of AdamW with a steady gradient is the rate.
      Case test = stepping(stored, stored == DType::bf16 ? 1e-3 : 1e-4);
      test.op = op;
      test.elements = kElements;
      test.stochastic = true;
      OneParameter many(test);
      many.steps(100, 1);
      const std::vector<double> after = many.run().state("p");
      // A step is rounded by at most a unit of the format, which has a deviation of half of it
      // at most; 100 steps add up to ten times that, and the mean over all divides it.
      const double unit = 2 * half_ulp(stored);
      const double deviation = unit / 2 * 10 / std::sqrt(static_cast<double>(kElements));
      EXPECT_NEAR(mean(after), 1 - 100 * test.rate, 5 * deviation) << text(stored);
    }
  }
}

TEST_F(StochasticRounding, is_the_same_for_the_same_key_and_changes_nothing_when_skipped) {
  Case test = stepping(DType::bf16, 1e-3);
  test.elements = 3000;
  test.stochastic = true;
  OneParameter one(test);
  OneParameter other(test);
  one.steps(3, 1);
  other.steps(3, 1);
  const Tensor before = one.run().states().save("p");
  EXPECT_TRUE(same_bits(before, other.run().states().save("p")));
  one.run().bind("skip", {1});
  one.step(1);
  EXPECT_TRUE(same_bits(before, one.run().states().save("p")));
  other.step(1);
  EXPECT_FALSE(same_bits(before, other.run().states().save("p")));
}

TEST_F(StochasticRounding, is_refused_where_nothing_is_rounded) {
  Case test = stepping(DType::f32, 1e-3);
  test.stochastic = true;
  const auto backend = vectors_backend();
  const auto plan = lower(OneParameter::graph(test), {&backend->target(), 1});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("stochastic rounding is of f16 and bf16"),
            std::string::npos)
      << plan.error().message;
}

// What clips: check_gradients and gradient_factor.
TEST_F(Clipping, has_the_coefficient_and_norm_of_pytorch) {
  const auto factor = [](DType dtype, std::int64_t count, double gradient, double scale) {
    Graph graph;
    Builder build(graph);
    const Value g = build.input("g", {dtype, Shape{count}});
    const Value found = build.add(Op::check_gradients, {g});
    const Value loss_scale = build.input("scale", {DType::f32, Shape()});
    const Value out = build.add(Op::gradient_factor, {Builder::output(found, 1), loss_scale},
                                {{"max_norm", 1.0}});
    graph.set_result("factor", out);
    graph.set_result("norm", Builder::output(out, 1));
    BackendRun run(vectors_backend(), {graph});
    run.bind("g", {gradient});
    run.bind("scale", {scale});
    run.run();
    return std::pair(run.number("factor"), run.number("norm"));
  };
  const auto [five, norm] = factor(DType::f32, 25, 1, 1);
  EXPECT_NEAR(five, 0.19999996, 1e-8);
  EXPECT_EQ(norm, 5);
  // 3e6 overflows f16, in which the gradients are.
  EXPECT_NEAR(factor(DType::f16, 300, 100, 1).second, 1732.0508, 1e-4);
  const auto [scaled, unscaled] = factor(DType::f32, 25, 65536, 65536);
  EXPECT_NEAR(scaled, 0.19999996 / 65536, 1e-8 / 65536);
  EXPECT_EQ(unscaled, 5);
}

}  // namespace
}  // namespace halfwatt
