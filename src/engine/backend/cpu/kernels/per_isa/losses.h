#pragma once

#include "engine/backend/cpu/kernels/per_isa/rows.h"
#include "engine/backend/cpu/kernels/per_isa/softmax.h"

// Bound: bytes, a few reads of one row in L1; a loss is one row in some hundred kilobytes of
// activations, so these are written to be right at the edges rather than to be fast: everything
// is taken relative to the row's largest logit, and no probability is ever formed and then
// passed to a logarithm.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// The mean of the first `valid` losses, in order and in double; 0 of none.
template <class T>
T mean_of(const T* losses, Index valid) {
  double sum = 0;
  for (Index row = 0; row < valid; ++row) {
    sum += static_cast<double>(losses[row]);
  }
  return valid == 0 ? T(0) : static_cast<T>(sum / static_cast<double>(valid));
}

template <class E>
void zero_row(E* gradient, Index classes) {
  for (Index j = 0; j < classes; ++j) {
    gradient[j] = 0;
  }
}

/// The loss of one row, and its gradient times `factor` if there is a place for it.
template <class E>
Real<E> cross_entropy_row(const CrossEntropy<E>& job, Index row, E* gradient, Real<E> factor) {
  using T = Real<E>;
  const Index classes = job.classes;
  const E* logits = job.logits + row * classes;
  const Index label = job.labels[row];
  const T shift = shift_of(logits, classes);
  T sum = 0;
  T all = 0;
#pragma omp simd reduction(+ : sum, all)
  for (Index j = 0; j < classes; ++j) {
    const T z = real(logits[j]) - shift;
    sum += exp_of(z);
    all += z;
  }
  const T spread = job.smoothing / static_cast<T>(classes);
  T loss = log_of(sum) - (1 - job.smoothing) * (real(logits[label]) - shift);
  if (job.smoothing != 0) {  // 0 * -inf of a masked class would be NaN
    loss -= spread * all;
  }
  if (gradient != nullptr) {
    const T share = 1 / sum;
    const T at_label = real(logits[label]);  // the gradient may take the logits' place
#pragma omp simd
    for (Index j = 0; j < classes; ++j) {
      gradient[j] = stored<E>(factor * (exp_of(real(logits[j]) - shift) * share - spread));
    }
    const T probability = exp_of(at_label - shift) * share;
    gradient[label] = stored<E>(factor * (probability - spread - (1 - job.smoothing)));
  }
  return loss;
}

template <class E>
void cross_entropy(Workers& workers, const CrossEntropy<E>& job) {
  using T = Real<E>;
  const T factor = job.factor / static_cast<T>(larger(1, job.valid));
  workers.parallel_for(job.rows, row_grain(job.classes), [&](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      E* gradient = job.gradient != nullptr ? job.gradient + row * job.classes : nullptr;
      if (row < job.valid) {
        job.loss[row] = cross_entropy_row(job, row, gradient, factor);
        continue;
      }
      job.loss[row] = 0;
      if (gradient != nullptr) {
        zero_row(gradient, job.classes);
      }
    }
  });
  *job.mean = mean_of(job.loss, job.valid);
}

template <class E>
Real<E> binary_cross_entropy_row(const BinaryCrossEntropy<E>& job,
                                 Index row,
                                 E* gradient,
                                 Real<E> factor) {
  using T = Real<E>;
  T loss = 0;
  for (Index j = 0; j < job.classes; ++j) {
    const T x = real(job.logits[row * job.classes + j]);
    const T target = job.targets[row * job.classes + j];
    const T e = exp_of(x < 0 ? x : -x);  // e^-|x|
    loss += (x < 0 ? 0 : x) - x * target + log1p_of(e);
    if (gradient != nullptr) {
      const T sigmoid = (x < 0 ? e : 1) / (1 + e);
      gradient[j] = stored<E>(factor * (sigmoid - target));
    }
  }
  return loss / static_cast<T>(job.classes);
}

template <class E>
void binary_cross_entropy(Workers& workers, const BinaryCrossEntropy<E>& job) {
  using T = Real<E>;
  const T factor = job.factor / static_cast<T>(larger(1, job.valid * job.classes));
  workers.parallel_for(job.rows, row_grain(job.classes), [&](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      E* gradient = job.gradient != nullptr ? job.gradient + row * job.classes : nullptr;
      if (row < job.valid) {
        job.loss[row] = binary_cross_entropy_row(job, row, gradient, factor);
        continue;
      }
      job.loss[row] = 0;
      if (gradient != nullptr) {
        zero_row(gradient, job.classes);
      }
    }
  });
  *job.mean = mean_of(job.loss, job.valid);
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
