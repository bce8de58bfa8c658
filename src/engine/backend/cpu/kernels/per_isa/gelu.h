#pragma once

#include "engine/backend/cpu/kernels/per_isa/elementary.h"
#include "engine/backend/cpu/kernels/per_isa/rows.h"

// Bound: bytes with vectors of 512 bits (some 40 operations for 8 bytes of float), else flops.
// The bias is added where the product before it is stored.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

template <class E>
void gelu_forward(Workers& workers, const GeluForward<E>& job) {
  workers.parallel_for(job.count, kGrain, [&job](Index begin, Index end, int) {
    const E* x = job.x;
    E* y = job.y;
    each(begin, end, [=](Index i) { y[i] = stored<E>(real(x[i]) * normal_cdf(real(x[i]))); });
  });
}

template <class E>
void gelu_backward(Workers& workers, const GeluBackward<E>& job) {
  using T = Real<E>;
  workers.parallel_for(job.count, kGrain, [&job](Index begin, Index end, int) {
    const E* x = job.x;
    const E* dy = job.dy;
    E* dx = job.dx;
    const auto slope = [](T z) { return normal_cdf(z) + z * normal_density(z); };
    each(begin, end, [=](Index i) { dx[i] = stored<E>(real(dy[i]) * slope(real(x[i]))); });
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
