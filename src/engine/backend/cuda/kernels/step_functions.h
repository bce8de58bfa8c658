#pragma once

#include <cmath>
#include <cstdint>

#include "engine/tensor/convert.h"

// The arithmetic of a step's end, one number at a time: what the kernels compute, and what the
// tests of every build hold against its definition, on the same source.

#if defined(__CUDACC__)
#define HALFWATT_HOST_DEVICE __host__ __device__
#else
#define HALFWATT_HOST_DEVICE
#endif

namespace halfwatt::cuda {

/// base^exponent, by squaring.
HALFWATT_HOST_DEVICE inline double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    result *= exponent % 2 != 0 ? base : 1;
  }
  return result;
}

/// `value` in f16 or bf16 and back; as it is where `math` is another.
HALFWATT_HOST_DEVICE inline float rounded_to(DType math, float value) {
  switch (math) {
    case DType::f16:
      return rounded<DType::f16>(value);
    case DType::bf16:
      return rounded<DType::bf16>(value);
    default:
      return value;
  }
}

/// What gradients are multiplied with, 1 / scale, clipped to a norm of `most` unless that is 0;
/// and their norm. `squares` are those of the scaled gradients.
struct GradientFactor {
  double factor, norm;
};
HALFWATT_HOST_DEVICE inline GradientFactor gradient_factor_of(double squares,
                                                              double scale,
                                                              double most) {
  const double inverse = 1 / scale;
  const double norm = std::sqrt(squares) * inverse;
  double clip = most > 0 ? most / (norm + 1e-6) : 1.0;
  clip = clip > 1 ? 1 : clip;  // a norm that is no number makes every gradient none
  return {inverse * clip, norm};
}

struct Schedule {
  enum class Kind { constant, cosine, linear } kind = Kind::constant;
  double base = 0, floor = 0;
  std::int64_t warmup = 0, total = 0;
};
/// The learning rate behind `applied` steps.
HALFWATT_HOST_DEVICE inline double learning_rate_of(const Schedule& schedule,
                                                    std::int64_t applied) {
  constexpr double kPi = 3.14159265358979323846;
  const auto step = static_cast<double>(applied);
  const auto warmup = static_cast<double>(schedule.warmup);
  const auto total = static_cast<double>(schedule.total);
  if (step < warmup) {
    return schedule.base * ((step + 1) / (warmup + 1));
  }
  if (schedule.kind == Schedule::Kind::constant || total <= warmup) {
    return schedule.base;
  }
  const double done = std::fmin(1.0, (step - warmup) / (total - warmup));
  const double left =
      schedule.kind == Schedule::Kind::cosine ? (1 + std::cos(kPi * done)) / 2 : 1 - done;
  return schedule.base * (schedule.floor + (1 - schedule.floor) * left);
}

/// A loss scale, and how many steps ago it last changed.
struct ScaleAge {
  float scale;
  std::int32_t age;
};
struct ScaleRule {
  float growth, backoff, floor;
  std::int64_t interval;
};
/// torch.amp.GradScaler.update(): a scale that would not be finite is not adopted.
HALFWATT_HOST_DEVICE inline ScaleAge next_scale(ScaleAge now,
                                                bool skip,
                                                const ScaleRule& rule) {
  if (skip) {
    return {std::fmax(now.scale * rule.backoff, rule.floor), 0};
  }
  if (++now.age < rule.interval) {
    return now;
  }
  const float grown = now.scale * rule.growth;
  return {std::isfinite(grown) ? grown : now.scale, 0};
}

/// A parameter and its moments.
struct States {
  float parameter, first, second;
};

/// What an optimizer follows from.
struct OptimizerNumbers {
  DType math;  ///< f32, or the 16-bit float that every operation is rounded to
  float factor;
  double rate, beta1, beta2, eps, decay, momentum;
  std::int64_t step;  ///< counts from 1
};

/// torch.optim.AdamW, in fp32 as the CPU's kernel, else as PyTorch's unfused one, which rounds
/// every operation (section 1.6 of the facts on mixed precision).
class AdamwStep {
 public:
  HALFWATT_HOST_DEVICE explicit AdamwStep(const OptimizerNumbers& of)
      : math_(of.math),
        factor_(of.factor),
        keep_(static_cast<float>(1 - of.rate * of.decay)),
        fresh1_(static_cast<float>(1 - of.beta1)),
        beta2_(static_cast<float>(of.beta2)),
        fresh2_(static_cast<float>(1 - of.beta2)),
        root_(static_cast<float>(std::sqrt(1 - power(of.beta2, of.step)))),
        eps_(static_cast<float>(of.eps)),
        step_size_(static_cast<float>(of.rate / (1 - power(of.beta1, of.step)))) {}

  HALFWATT_HOST_DEVICE void operator()(States& states, float gradient) const {
    const float g = round(gradient * factor_);
    const float parameter = round(states.parameter * keep_);
    states.first = round(states.first + fresh1_ * (g - states.first));
    states.second = round(round(states.second * beta2_) + fresh2_ * g * g);
    float denominator = round(std::sqrt(states.second));
    denominator = round(denominator / root_);
    denominator = round(denominator + eps_);
    states.parameter = round(parameter - step_size_ * (states.first / denominator));
  }

 private:
  HALFWATT_HOST_DEVICE float round(float value) const { return rounded_to(math_, value); }

  DType math_;
  float factor_, keep_, fresh1_, beta2_, fresh2_, root_, eps_, step_size_;
};

/// torch.optim.SGD, without dampening and Nesterov's variant; `first` is the momentum.
class SgdStep {
 public:
  HALFWATT_HOST_DEVICE explicit SgdStep(const OptimizerNumbers& of)
      : math_(of.math),
        factor_(of.factor),
        rate_(static_cast<float>(of.rate)),
        decay_(static_cast<float>(of.decay)),
        momentum_(static_cast<float>(of.momentum)),
        is_first_(of.step == 1) {}

  HALFWATT_HOST_DEVICE void operator()(States& states, float gradient) const {
    float g = round(gradient * factor_);
    if (decay_ != 0) {  // 0 * inf would be NaN
      g = round(g + decay_ * states.parameter);
    }
    states.first = is_first_ ? g : round(round(states.first * momentum_) + g);
    states.parameter = round(states.parameter - rate_ * states.first);
  }

 private:
  HALFWATT_HOST_DEVICE float round(float value) const { return rounded_to(math_, value); }

  DType math_;
  float factor_, rate_, decay_, momentum_;
  bool is_first_;
};

/// gelu(x) with erf, and its slope.
HALFWATT_HOST_DEVICE inline float gelu_of(float x) {
  return x * (0.5F * std::erfc(x * -0.70710678118654752440F));
}
HALFWATT_HOST_DEVICE inline float gelu_slope_of(float x) {
  constexpr float kInverseRoot = 0.39894228040143267794F;  // 1 / sqrt(2 pi)
  const float below = 0.5F * std::erfc(x * -0.70710678118654752440F);
  return below + x * (kInverseRoot * std::exp(-0.5F * x * x));
}

/// The same two for floats of 16 bits, in fewer instructions: relative errors of 2e-5 down to
/// x = -12, where those of the format are 2e-4 and more. Half of erfc(|x| / sqrt 2) is exp(-x^2
/// / 2) times a polynomial of 1 / (1 + |x| p), fitted by the largest relative error.
class RoughGelu {
 public:
  HALFWATT_HOST_DEVICE explicit RoughGelu(float x) : x_(x) {
    const float t = inverse(1.0F + 0.31112698F * std::fabs(x));
    float sum = -0.07306445F;
    sum = sum * t + 0.17536427F;
    sum = sum * t + 0.02031865F;
    sum = sum * t + 0.13181998F;
    sum = sum * t + 0.12127788F;
    sum = sum * t + 0.12428111F;
    bell_ = exponential(-0.5F * x * x);
    const float beyond = sum * t * bell_;
    below_ = x < 0 ? beyond : 1.0F - beyond;
  }
  HALFWATT_HOST_DEVICE float value() const { return x_ * below_; }
  HALFWATT_HOST_DEVICE float slope() const { return below_ + x_ * 0.39894228F * bell_; }

 private:
#if defined(__CUDA_ARCH__)
  static __device__ float inverse(float x) { return __fdividef(1.0F, x); }
  static __device__ float exponential(float x) { return __expf(x); }
#else
  static float inverse(float x) { return 1.0F / x; }
  static float exponential(float x) { return std::exp(x); }
#endif

  float x_, bell_, below_;
};

}  // namespace halfwatt::cuda
