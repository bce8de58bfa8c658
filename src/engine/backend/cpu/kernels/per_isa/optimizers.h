#pragma once

#include "engine/backend/cpu/kernels/per_isa/rows.h"

// Bound: bytes. AdamW reads 16 and writes 12 of them for each parameter, in one pass; unfused,
// as a sequence of tensor operations, it is some 60.
//
// The arithmetic keeps PyTorch's order; factors that are the same for all parameters are
// computed in double, as Python does, and rounded once.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// base^exponent, by squaring: std::pow is allowed to differ between machines.
inline double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    result *= exponent % 2 != 0 ? base : 1;
  }
  return result;
}

/// What a step of AdamW multiplies with.
template <class T>
struct AdamWFactors {
  T keep, fresh1, beta2, fresh2, root2, epsilon, step_size, unscale;
};

template <class T>
AdamWFactors<T> factors_of(const AdamW<T>& job) {
  const double correction1 = 1 - power(job.beta1, job.step);
  const double correction2 = 1 - power(job.beta2, job.step);
  return {.keep = static_cast<T>(1 - job.lr * job.weight_decay),
          .fresh1 = static_cast<T>(1 - job.beta1),
          .beta2 = static_cast<T>(job.beta2),
          .fresh2 = static_cast<T>(1 - job.beta2),
          .root2 = static_cast<T>(__builtin_sqrt(correction2)),
          .epsilon = static_cast<T>(job.epsilon),
          .step_size = static_cast<T>(job.lr / correction1),
          .unscale = job.unscale};
}

template <class T>
void adamw(const AdamW<T>& job) {
  const AdamWFactors<T> by = factors_of(job);
  T* parameters = job.parameters;
  T* first = job.first_moments;
  T* second = job.second_moments;
  const T* gradients = job.gradients;
#pragma omp simd
  for (Index i = 0; i < job.count; ++i) {
    const T gradient = gradients[i] * by.unscale;
    const T decayed = parameters[i] * by.keep;
    const T m = first[i] + by.fresh1 * (gradient - first[i]);
    const T v = second[i] * by.beta2 + by.fresh2 * gradient * gradient;
    first[i] = m;
    second[i] = v;
    parameters[i] = decayed - by.step_size * (m / (square_root(v) / by.root2 + by.epsilon));
  }
}

template <class T>
void sgd(const Sgd<T>& job) {
  const T lr = static_cast<T>(job.lr);
  const T decay = static_cast<T>(job.weight_decay);
  const T momentum = static_cast<T>(job.momentum);
  const T unscale = job.unscale;
  T* parameters = job.parameters;
  T* momenta = job.momenta;
  const T* gradients = job.gradients;
  const auto gradient_at = [=](Index i) {
    const T gradient = gradients[i] * unscale;
    return decay == 0 ? gradient : gradient + decay * parameters[i];  // 0 * inf would be NaN
  };
  if (job.step == 1) {
    each(0, job.count, [=](Index i) {
      momenta[i] = gradient_at(i);
      parameters[i] -= lr * momenta[i];
    });
  } else {
    each(0, job.count, [=](Index i) {
      momenta[i] = momenta[i] * momentum + gradient_at(i);
      parameters[i] -= lr * momenta[i];
    });
  }
}

/// Counted in integers as wide as the numbers, so that vectors of both have as many lanes.
template <class T>
Tally tally(Index count, const T* before, const T* after) {
  using Count = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  Count not_finite = 0;
  Count unchanged = 0;
#pragma omp simd reduction(+ : not_finite, unchanged)
  for (Index i = 0; i < count; ++i) {
    not_finite += __builtin_isfinite(after[i]) ? 0 : 1;
    unchanged += after[i] == before[i] ? 1 : 0;
  }
  return {not_finite, unchanged};
}

/// The sum of squares of one part, as 16 sums side by side: gcc 12 does not vectorise a
/// reduction from float into double.
template <class E>
double square_sum_of(const E* x, Index count) {
  constexpr Index kSums = 16;
  double sums[kSums] = {};
  const Index whole = count / kSums * kSums;
  for (Index i = 0; i < whole; i += kSums) {
    for (Index j = 0; j < kSums; ++j) {
      const auto value = static_cast<double>(real(x[i + j]));
      sums[j] += value * value;
    }
  }
  for (Index i = whole; i < count; ++i) {
    const auto value = static_cast<double>(real(x[i]));
    sums[i - whole] += value * value;
  }
  double sum = 0;
  for (const double one : sums) {
    sum += one;
  }
  return sum;
}

template <class E>
SquareSum square_sum(Workers& workers, Index count, const E* x) {
  const Index parts = parts_of(count);
  double partial[64];
  workers.parallel_for(parts, 1, [&](Index begin, Index end, int) {
    for (Index part = begin; part < end; ++part) {
      const Index first = part_begin(count, parts, part);
      partial[part] = square_sum_of(x + first, part_begin(count, parts, part + 1) - first);
    }
  });
  double sum = 0;
  for (Index part = 0; part < parts; ++part) {
    sum += partial[part];
  }
  return {sum, __builtin_isfinite(sum) != 0};
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
