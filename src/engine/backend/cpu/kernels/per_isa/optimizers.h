#pragma once

#include "engine/backend/cpu/kernels/per_isa/rows.h"

// Bound: bytes. AdamW reads 16 and writes 12 of them for each parameter, in one pass; unfused,
// as a sequence of tensor operations, it is some 60. The bf16 copy is made of a strip that is
// still in L1.
//
// The arithmetic keeps PyTorch's order; factors that are the same for all parameters are
// computed in double, as Python does, and rounded once.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// Parameters between two looks at the copy.
inline constexpr Index kStrip = 1024;

template <class T>
void copy_to_bf16(const T* from, Index begin, Index end, Bf16* to) {
#pragma omp simd
  for (Index i = begin; i < end; ++i) {
    to[i] = rounded_to_bf16(static_cast<float>(from[i]));
  }
}

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
void adamw_strip(const AdamW<T>& job, const AdamWFactors<T>& factors, Index begin, Index end) {
  const AdamWFactors<T> by = factors;  // a copy: nothing that is stored can change it
  T* parameters = job.parameters;
  T* first = job.first_moments;
  T* second = job.second_moments;
  const T* gradients = job.gradients;
#pragma omp simd
  for (Index i = begin; i < end; ++i) {
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
void adamw(Workers& workers, const AdamW<T>& job) {
  const AdamWFactors<T> factors = factors_of(job);
  workers.parallel_for(job.count, kGrain, [&](Index begin, Index end, int) {
    for (Index strip = begin; strip < end; strip += kStrip) {
      const Index last = smaller(strip + kStrip, end);
      adamw_strip(job, factors, strip, last);
      if (job.copy != nullptr) {
        copy_to_bf16(job.parameters, strip, last, job.copy);
      }
    }
  });
}

template <class T>
void sgd_strip(const Sgd<T>& job, Index begin, Index end) {
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
  if (momenta == nullptr) {
    each(begin, end, [=](Index i) { parameters[i] -= lr * gradient_at(i); });
  } else if (job.step == 1) {
    each(begin, end, [=](Index i) {
      momenta[i] = gradient_at(i);
      parameters[i] -= lr * momenta[i];
    });
  } else {
    each(begin, end, [=](Index i) {
      momenta[i] = momenta[i] * momentum + gradient_at(i);
      parameters[i] -= lr * momenta[i];
    });
  }
}

template <class T>
void sgd(Workers& workers, const Sgd<T>& job) {
  workers.parallel_for(job.count, kGrain, [&job](Index begin, Index end, int) {
    for (Index strip = begin; strip < end; strip += kStrip) {
      const Index last = smaller(strip + kStrip, end);
      sgd_strip(job, strip, last);
      if (job.copy != nullptr) {
        copy_to_bf16(job.parameters, strip, last, job.copy);
      }
    }
  });
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
