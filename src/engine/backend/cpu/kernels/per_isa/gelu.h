#pragma once

#include "engine/backend/cpu/kernels/per_isa/elementary.h"
#include "engine/backend/cpu/kernels/per_isa/rows.h"

// Bound: bytes with vectors of 512 bits (some 40 operations for 8 bytes of float), else flops.
// A matmul's post-op spares the pass altogether; this is for where there is none.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

template <class E>
void gelu_forward(Workers& workers, const GeluForward<E>& job) {
  using T = Real<E>;
  workers.parallel_for(job.rows, row_grain(job.width), [&job](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      const E* x = job.x + row * job.width;
      const T* bias = job.bias;
      E* y = job.y + row * job.width;
      const auto gelu = [](T z) { return stored<E>(z * normal_cdf(z)); };
      if (bias == nullptr) {
        each(0, job.width, [=](Index j) { y[j] = gelu(real(x[j])); });
      } else {
        each(0, job.width, [=](Index j) { y[j] = gelu(real(x[j]) + bias[j]); });
      }
    }
  });
}

template <class E>
void gelu_backward(Workers& workers, const GeluBackward<E>& job) {
  using T = Real<E>;
  workers.parallel_for(job.rows, row_grain(job.width), [&job](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      const E* x = job.x + row * job.width;
      const E* dy = job.dy + row * job.width;
      const T* bias = job.bias;
      E* dx = job.dx + row * job.width;
      const auto slope = [](T z) { return normal_cdf(z) + z * normal_density(z); };
      if (bias == nullptr) {
        each(0, job.width,
             [=](Index j) { dx[j] = stored<E>(real(dy[j]) * slope(real(x[j]))); });
      } else {
        each(0, job.width,
             [=](Index j) { dx[j] = stored<E>(real(dy[j]) * slope(real(x[j]) + bias[j])); });
      }
    }
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
