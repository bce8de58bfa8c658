#pragma once

#include "engine/backend/cpu/kernels/per_isa/rows.h"

// Bound: bytes. Forward reads x (and the residual) and writes y (and the sum); the three passes
// over a row, 3 KB at a width of 768, find it in L1. Backward reads dy and x and writes dx.
//
// Mean and variance are taken as they are defined. Rejected: E[x^2] - E[x]^2, which of a
// constant row of 1000.1 in float makes a variance of -16, and Welford's recurrence, which is a
// chain of divisions. The mean is corrected once by the mean of what is left, so that a
// constant row is exactly beta: with rstd at 1000, an error of one unit in the last place of
// 1000.1 would show as 0.06.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// The mean in two parts: a first guess, and what is missing.
template <class T>
struct Moments {
  T guess, rest, rstd;
};

template <class E>
Moments<Real<E>> moments_of(const E* x, Index width, Real<E> epsilon) {
  using T = Real<E>;
  const T count = static_cast<T>(width);
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < width; ++j) {
    sum += real(x[j]);
  }
  const T guess = sum / count;
  T left = 0;
#pragma omp simd reduction(+ : left)
  for (Index j = 0; j < width; ++j) {
    left += real(x[j]) - guess;
  }
  const T rest = left / count;
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (Index j = 0; j < width; ++j) {
    const T away = real(x[j]) - guess - rest;
    squares += away * away;
  }
  return {guess, rest, 1 / square_root(squares / count + epsilon)};
}

template <class E>
void layer_norm_forward(Workers& workers, const LayerNormForward<E>& job) {
  using T = Real<E>;
  workers.parallel_for(job.rows, row_grain(job.width), [&job](Index begin, Index end, int) {
    const Index width = job.width;
    for (Index row = begin; row < end; ++row) {
      const E* x = job.x + row * width;
      if (job.residual != nullptr) {
        // As stored: what backward reads, and what the next layer adds to, is what is
        // normalised.
        const E* residual = job.residual + row * width;
        E* sum = job.sum + row * width;
#pragma omp simd
        for (Index j = 0; j < width; ++j) {
          sum[j] = stored<E>(real(x[j]) + real(residual[j]));
        }
        x = sum;
      }
      const Moments<T> moments = moments_of(x, width, job.epsilon);
      E* y = job.y + row * width;
#pragma omp simd
      for (Index j = 0; j < width; ++j) {
        const T normal = (real(x[j]) - moments.guess - moments.rest) * moments.rstd;
        y[j] = stored<E>(normal * job.gamma[j] + job.beta[j]);
      }
      job.mean[row] = moments.guess + moments.rest;
      job.rstd[row] = moments.rstd;
    }
  });
}

template <class E>
std::size_t layer_norm_backward_bytes(Index rows, Index width) {
  return 2 * sum_rows_bytes<E>(rows, width);
}

/// One row of dx, and the row's share in dgamma and dbeta.
template <class E>
void layer_norm_backward_row(const LayerNormBackward<E>& job,
                             Index row,
                             Real<E>* dgamma,
                             Real<E>* dbeta) {
  using T = Real<E>;
  const Index width = job.width;
  const E* x = job.x + row * width;
  const E* dy = job.dy + row * width;
  const E* residual = job.residual != nullptr ? job.residual + row * width : nullptr;
  const T* gamma = job.gamma;
  E* dx = job.dx + row * width;
  const T mean = job.mean[row];
  const T rstd = job.rstd[row];
  T along_one = 0;
  T along_normal = 0;
#pragma omp simd reduction(+ : along_one, along_normal)
  for (Index j = 0; j < width; ++j) {
    const T gradient = real(dy[j]);
    const T normal = (real(x[j]) - mean) * rstd;
    dgamma[j] += gradient * normal;
    dbeta[j] += gradient;
    along_one += gradient * gamma[j];
    along_normal += gradient * gamma[j] * normal;
  }
  along_one /= static_cast<T>(width);
  along_normal /= static_cast<T>(width);
  const auto dx_at = [=](Index j) {
    const T normal = (real(x[j]) - mean) * rstd;
    return rstd * (real(dy[j]) * gamma[j] - along_one - normal * along_normal);
  };
  each(0, width, [=](Index j) { dx[j] = stored<E>(dx_at(j)); });
  if (residual != nullptr) {
    // In a loop of its own, over a row that is in the cache: in one loop the sum would be fused
    // into the multiplication, and differ in the last bit from that of two kernels.
    each(0, width, [=](Index j) { dx[j] = stored<E>(real(dx[j]) + real(residual[j])); });
  }
}

template <class E>
void layer_norm_backward(Workers& workers, const LayerNormBackward<E>& job) {
  using T = Real<E>;
  const Index parts = parts_of(job.rows);
  T* dgammas = reinterpret_cast<T*>(job.workspace);
  T* dbetas = dgammas + parts * job.width;
  workers.parallel_for(parts, 1, [&](Index begin, Index end, int) {
    for (Index part = begin; part < end; ++part) {
      T* dgamma = dgammas + part * job.width;
      T* dbeta = dbetas + part * job.width;
      for (Index j = 0; j < job.width; ++j) {
        dgamma[j] = 0;
        dbeta[j] = 0;
      }
      const Index last = part_begin(job.rows, parts, part + 1);
      for (Index row = part_begin(job.rows, parts, part); row < last; ++row) {
        layer_norm_backward_row(job, row, dgamma, dbeta);
      }
    }
  });
  sum_parts(workers, dgammas, parts, job.width, job.dgamma);
  sum_parts(workers, dbetas, parts, job.width, job.dbeta);
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
