#include "engine/backend/cpu/kernels/per_isa/attention_backward.h"
#include "engine/backend/cpu/kernels/per_isa/convolution.h"
#include "engine/backend/cpu/kernels/per_isa/gelu.h"
#include "engine/backend/cpu/kernels/per_isa/layer_norm.h"
#include "engine/backend/cpu/kernels/per_isa/linear.h"
#include "engine/backend/cpu/kernels/per_isa/losses.h"
#include "engine/backend/cpu/kernels/per_isa/optimizers.h"

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// The kernels of this ISA.
template <class E>
const Kernels<E>& table() {
  using T = Real<E>;
  static constexpr Kernels<E> kTable = {
      .layer_norm_forward = layer_norm_forward<E>,
      .layer_norm_backward = layer_norm_backward<E>,
      .layer_norm_backward_bytes = layer_norm_backward_bytes<E>,
      .attention_forward = attention_forward<E>,
      .attention_forward_bytes = attention_forward_bytes<E>,
      .attention_backward = attention_backward<E>,
      .attention_backward_bytes = attention_backward_bytes<E>,
      .gelu_forward = gelu_forward<E>,
      .gelu_backward = gelu_backward<E>,
      .cross_entropy = cross_entropy<E>,
      .binary_cross_entropy = binary_cross_entropy<E>,
      .adamw = adamw<T>,
      .sgd = sgd<T>,
      .tally = tally<T>,
      .square_sum = square_sum<E>,
      .add = add<E>,
      .add_rows = add_rows<E>,
      .sum_rows = sum_rows<E>,
      .sum_rows_bytes = sum_rows_bytes<E>,
      .scale_rows = scale_rows<E>,
      .matmul = matmul<E>,
      .matmul_bytes = matmul_bytes<E>,
      .linear = linear<E>,
      .linear_bytes = linear_bytes<E>,
      .panels = {kTileColumns<T>, std::is_same_v<Packed<E>, Pair> ? 2 : 1},
      .convolution = convolution<E>,
      .convolution_input_gradient = convolution_input_gradient<E>,
      .convolution_weight_gradient = convolution_weight_gradient<E>,
      .convolution_bytes = convolution_bytes<T>,
      .convolution_bias_gradient = convolution_bias_gradient<E>,
  };
  return kTable;
}

template const Kernels<float>& table<float>();
template const Kernels<double>& table<double>();
template const Kernels<Bf16>& table<Bf16>();

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE
