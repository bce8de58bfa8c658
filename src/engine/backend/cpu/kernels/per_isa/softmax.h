#pragma once

#include "engine/backend/cpu/kernels/per_isa/elementary.h"

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// What is taken off a row before exp: its largest element; 0 if that is -inf, so that a row of
/// nothing but -inf becomes zeros, and a NaN stays one.
template <class E>
Real<E> shift_of(const E* row, Index width) {
  using T = Real<E>;
  T most = -__builtin_inff();
#pragma omp simd reduction(max : most)
  for (Index j = 0; j < width; ++j) {
    const T x = real(row[j]);
    most = x > most ? x : most;
  }
  return most == -__builtin_inff() ? 0 : most;
}

/// to[j] = exp(row[j] - shift); returns their sum. `to` may be the row.
template <class E>
Real<E> exp_row(const E* row, Index width, Real<E> shift, Real<E>* to) {
  using T = Real<E>;
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < width; ++j) {
    const T e = exp_of(real(row[j]) - shift);
    to[j] = e;
    sum += e;
  }
  return sum;
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
