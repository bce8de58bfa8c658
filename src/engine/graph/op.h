#pragma once

#include <cstdint>
#include <string_view>

namespace halfwatt {

/// What a node computes. What each takes, gives and costs is its row in ops/; names here are
/// the field's. A gradient that is not made of other ops is an op of its own.
enum class Op : std::uint8_t {
  // Where values come from and go to.
  input,     ///< bound for every run: images, labels, random keys
  constant,  ///< one number in every element
  read,      ///< of a state, as it was before the step
  write,     ///< of a state, as it is after the step

  // Products.
  matmul,
  convolution,
  convolution_input_gradient,
  convolution_weight_gradient,
  attention,
  attention_gradient,

  // Over a row or over everything, summed in fp32 whatever the storage.
  layer_norm,
  layer_norm_gradient,
  cross_entropy,
  cross_entropy_gradient,
  binary_cross_entropy,
  binary_cross_entropy_gradient,
  mean,
  sum_to,

  // Element by element.
  cast,
  normalise,  ///< bytes of pictures to numbers
  add,
  scale,
  gelu,
  gelu_gradient,
  dropout,
  drop_path,

  // The same numbers elsewhere.
  reshape,
  expand,
  slice,
  slice_gradient,
  concatenate,
  transpose,
  transfer,

  // The update of a step.
  check_gradients,
  gradient_factor,
  learning_rate,
  adamw,
  sgd,
  ema,
  advance,
  update_scale,
  observe_amax,
  rescale,

  // What fuse and lay_out make of others.
  add_layer_norm,
  linear,
};
inline constexpr int kOps = static_cast<int>(Op::linear) + 1;

/// By this a precision decides the dtypes of an op.
enum class NumericClass : std::uint8_t {
  source,     ///< no arithmetic: dtypes are what they are
  gemm,       ///< a product: tensor cores, low precision
  reduce,     ///< a sum over many elements: norms and losses
  pointwise,  ///< computes in the dtype of its inputs, the wider one of two
  shape,      ///< moves numbers
  update,     ///< of states, in the optimizer's arithmetic
};

}  // namespace halfwatt
