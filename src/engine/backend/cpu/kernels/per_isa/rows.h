#pragma once

#include "engine/backend/cpu/kernels/per_isa/scratch.h"

// Loops over rows without arithmetic to speak of. Bound: bytes; each reads and writes once.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// Elements that are worth a thread's waking up: some 10 us of memory traffic.
inline constexpr Index kGrain = 1 << 14;
/// As many rows of `width` elements.
inline Index row_grain(Index width) { return larger(1, kGrain / larger(1, width)); }

/// Sums over rows are taken in parts, each part by one thread from its first row to its last,
/// and then over the parts in order. How many parts follows from the rows alone, not from the
/// threads, so that the bits do too. At most 64: more threads than that wait.
inline Index parts_of(Index rows) { return smaller(64, larger(1, rows / 32)); }
/// Where part `at` of `parts` begins.
inline Index part_begin(Index rows, Index parts, Index at) { return rows * at / parts; }

/// y[j] = sum of parts[part][j], from the first part to the last.
template <class T>
void sum_parts(Workers& workers, const T* partial, Index parts, Index width, T* y) {
  workers.parallel_for(width, 1024, [&](Index begin, Index end, int) {
    for (Index j = begin; j < end; ++j) {
      y[j] = partial[j];
    }
    for (Index part = 1; part < parts; ++part) {
#pragma omp simd
      for (Index j = begin; j < end; ++j) {
        y[j] += partial[part * width + j];
      }
    }
  });
}

template <class E>
std::size_t sum_rows_bytes(Index rows, Index width) {
  return static_cast<std::size_t>(parts_of(rows) * width) * sizeof(Real<E>);
}

template <class E>
void sum_rows(Workers& workers, const SumRows<E>& job) {
  using T = Real<E>;
  T* partial = reinterpret_cast<T*>(job.workspace);
  const Index parts = parts_of(job.rows);
  workers.parallel_for(parts, 1, [&](Index begin, Index end, int) {
    for (Index part = begin; part < end; ++part) {
      T* sum = partial + part * job.width;
      for (Index j = 0; j < job.width; ++j) {
        sum[j] = 0;
      }
      const Index last = part_begin(job.rows, parts, part + 1);
      for (Index row = part_begin(job.rows, parts, part); row < last; ++row) {
        const E* x = job.x + row * job.width;
#pragma omp simd
        for (Index j = 0; j < job.width; ++j) {
          sum[j] += real(x[j]);
        }
      }
    }
  });
  sum_parts(workers, partial, parts, job.width, job.y);
}

template <class E>
void add(Workers& workers, const Add<E>& job) {
  workers.parallel_for(job.count, kGrain, [&job](Index begin, Index end, int) {
    const E* a = job.a;
    const E* b = job.b;
    E* y = job.y;
#pragma omp simd
    for (Index i = begin; i < end; ++i) {
      y[i] = stored<E>(real(a[i]) + real(b[i]));
    }
  });
}

template <class E>
void add_rows(Workers& workers, const AddRows<E>& job) {
  workers.parallel_for(job.rows, row_grain(job.width), [&job](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      const E* a = job.a + row * job.width;
      E* y = job.y + row * job.width;
#pragma omp simd
      for (Index j = 0; j < job.width; ++j) {
        y[j] = stored<E>(real(a[j]) + job.b[j]);
      }
    }
  });
}

template <class E>
void scale_rows(Workers& workers, const ScaleRows<E>& job) {
  workers.parallel_for(job.rows, row_grain(job.width), [&job](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      const E* x = job.x + row * job.width;
      E* y = job.y + row * job.width;
      const Real<E> factor = job.factors[row];
#pragma omp simd
      for (Index j = 0; j < job.width; ++j) {
        y[j] = stored<E>(real(x[j]) * factor);
      }
    }
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
