// What the kernels of a step's end compute, on the same source, where there is no GPU.

#include "engine/backend/cuda/kernels/step_functions.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace halfwatt::cuda {
namespace {

OptimizerNumbers numbers(DType math) { return {math, 1, 1e-3, 0.9, 0.999, 1e-8, 0.05, 0.9, 1}; }

// Written down from the definition, in double.
TEST(AdamwStep, is_that_of_its_definition) {
  Rng rng(7);
  OptimizerNumbers of = numbers(DType::f32);
  States states{0.5F, 0, 0};
  double parameter = 0.5;
  double first = 0;
  double second = 0;
  for (of.step = 1; of.step <= 50; ++of.step) {
    const auto gradient = static_cast<float>(rng.normal());
    AdamwStep{of}(states, gradient);
    first = of.beta1 * first + (1 - of.beta1) * gradient;
    second = of.beta2 * second + (1 - of.beta2) * gradient * gradient;
    const auto step = static_cast<double>(of.step);
    const double mean = first / (1 - std::pow(of.beta1, step));
    const double spread = std::sqrt(second / (1 - std::pow(of.beta2, step)));
    parameter = parameter * (1 - of.rate * of.decay) - of.rate * mean / (spread + of.eps);
    EXPECT_NEAR(states.parameter, parameter, 1e-6) << of.step;
  }
}

// Pure fp16 with eps 1e-8: the second moment underflows to 0, eps too, and 0 / 0 or x / 0 is no
// number. That is what the preflight warns of.
TEST(AdamwStep, dies_in_fp16_with_the_usual_eps_and_lives_with_a_larger_one) {
  OptimizerNumbers of = numbers(DType::f16);
  States dies{0.5F, 0, 0};
  AdamwStep{of}(dies, 1e-4F);
  EXPECT_FALSE(std::isfinite(dies.parameter));
  of.eps = 1e-4;
  States lives{0.5F, 0, 0};
  AdamwStep{of}(lives, 1e-4F);
  EXPECT_TRUE(std::isfinite(lives.parameter));
}

TEST(SgdStep, begins_with_the_gradient_and_then_keeps_its_momentum) {
  OptimizerNumbers of = numbers(DType::f32);
  of.decay = 0;
  of.rate = 0.5;
  States states{1, 123, 0};
  SgdStep{of}(states, 0.25F);
  EXPECT_EQ(states.first, 0.25F);
  EXPECT_EQ(states.parameter, 0.875F);
  of.step = 2;
  SgdStep{of}(states, 0.5F);
  EXPECT_EQ(states.first, 0.25F * 0.9F + 0.5F);
}

// Section 3 of the facts on mixed precision, vector 22: PyTorch's coefficient.
TEST(GradientFactorOf, clips_as_pytorch_does) {
  const GradientFactor found = gradient_factor_of(25, 1, 1);
  EXPECT_NEAR(found.factor, 0.19999996, 1e-8);
  EXPECT_EQ(found.norm, 5);
  EXPECT_EQ(gradient_factor_of(25, 4, 0).factor, 0.25);
  EXPECT_EQ(gradient_factor_of(25, 4, 0).norm, 1.25);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(gradient_factor_of(infinity, 1, 1).factor, 0);
}

TEST(LearningRateOf, rises_then_falls_to_its_floor) {
  Schedule schedule{Schedule::Kind::cosine, 2, 0.1, 3, 13};
  EXPECT_EQ(learning_rate_of(schedule, 0), 0.5);
  EXPECT_EQ(learning_rate_of(schedule, 2), 1.5);
  EXPECT_EQ(learning_rate_of(schedule, 3), 2);
  EXPECT_NEAR(learning_rate_of(schedule, 8), 2 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(learning_rate_of(schedule, 13), 0.2, 1e-12);
  EXPECT_NEAR(learning_rate_of(schedule, 99), 0.2, 1e-12);
  schedule.kind = Schedule::Kind::linear;
  EXPECT_NEAR(learning_rate_of(schedule, 8), 2 * (0.1 + 0.9 * 0.5), 1e-12);
  schedule.kind = Schedule::Kind::constant;
  EXPECT_EQ(learning_rate_of(schedule, 99), 2);
}

// torch.amp.GradScaler: halved by a skipped step, doubled behind an interval of good ones.
TEST(NextScale, is_that_of_grad_scaler) {
  const ScaleRule rule{2, 0.5F, 1, 3};
  ScaleAge now{8, 0};
  const std::array<bool, 8> skips = {false, false, false, true, false, true, true, true};
  const std::array<float, 8> scales = {8, 8, 16, 8, 8, 4, 2, 1};
  for (std::size_t at = 0; at < skips.size(); ++at) {
    now = next_scale(now, skips[at], rule);
    EXPECT_EQ(now.scale, scales[at]) << at;
  }
  EXPECT_EQ(next_scale({1, 0}, true, rule).scale, 1) << "the floor";
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(next_scale({largest, 2}, false, rule).scale, largest) << "infinity is not adopted";
}

// Vector 18 of the same section.
TEST(GeluOf, has_the_values_of_erf_and_not_of_tanh) {
  EXPECT_NEAR(gelu_of(-5), -1.43326e-6, 1e-10);
  EXPECT_NEAR(gelu_of(-1), -0.15865525, 1e-7);
  EXPECT_NEAR(gelu_of(1), 0.84134475, 1e-7);
  EXPECT_NEAR(gelu_of(3), 2.99595031, 3e-7);
  EXPECT_NEAR(gelu_slope_of(0), 0.5, 1e-7);
  EXPECT_NEAR(gelu_slope_of(1), 1.08331547, 2e-7);
  EXPECT_NEAR(gelu_slope_of(-1), -0.08331547, 1e-7);
}

// The polynomial is right to 5.3e-6; the exponent, x^2 / 2, is rounded as a float is.
TEST(RoughGelu, is_within_two_hundred_thousandths_of_the_exact_one) {
  for (int at = -12'000; at <= 12'000; ++at) {
    const auto given = static_cast<float>(at * 1e-3);
    const double x = given;
    const double below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double bell = std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
    const double error = 6e-6 + x * x * 0x1p-24;
    ASSERT_LT(error, 2e-5);
    const RoughGelu rough(given);
    EXPECT_NEAR(rough.value(), x * below, error * std::abs(x * below) + 1e-37) << x;
    // Its two terms have other signs where the slope is near 0.
    EXPECT_NEAR(rough.slope(), below + x * bell, error * (below + std::abs(x * bell)) + 1e-37)
        << x;
  }
}

TEST(RoughGelu, is_what_it_is_far_out) {
  const float far = std::numeric_limits<float>::infinity();
  EXPECT_EQ(RoughGelu(far).value(), far);
  EXPECT_EQ(RoughGelu(100).value(), 100);
  EXPECT_EQ(RoughGelu(100).slope(), 1);
  EXPECT_EQ(RoughGelu(-100).value(), 0);
  EXPECT_TRUE(std::isnan(RoughGelu(std::nanf("")).value()));
}

}  // namespace
}  // namespace halfwatt::cuda
