#pragma once

#include <span>
#include <string>

#include "engine/backend/cuda/call.h"
#include "engine/ops/op_def.h"

namespace halfwatt::cuda {

/// How the GPU computes an op: one row of the table. Every run takes all its scratch before it
/// asks is_dry().
struct Binding {
  Op op;
  void (*run)(Call& call);
  /// Why a node is refused; empty if it is not. nullptr: none is, but for its dtypes.
  std::string (*refuses)(const Node& node, std::span<const TensorType> inputs) = nullptr;
};

/// The row of `op`; nullptr if the GPU does not compute it.
const Binding* binding(Op op);

/// Why a node is not computed here; empty if it is.
std::string why_refused(const Node& node, std::span<const TensorType> inputs, bool has_fp8);

// What the rows name, each in the file of its kind.
void run_matmul(Call& call);
void run_convolution(Call& call);
void run_convolution_input_gradient(Call& call);
void run_convolution_weight_gradient(Call& call);
void run_attention(Call& call);
void run_attention_gradient(Call& call);

void run_layer_norm(Call& call);
void run_layer_norm_gradient(Call& call);
void run_add_layer_norm(Call& call);
void run_cross_entropy(Call& call);
void run_cross_entropy_gradient(Call& call);
void run_binary_cross_entropy(Call& call);
void run_binary_cross_entropy_gradient(Call& call);
void run_mean(Call& call);
void run_sum_to(Call& call);

void run_cast(Call& call);
void run_normalise(Call& call);
void run_add(Call& call);
void run_scale(Call& call);
void run_gelu(Call& call);
void run_gelu_gradient(Call& call);
void run_dropout(Call& call);
void run_drop_path(Call& call);

void run_constant(Call& call);
void run_write(Call& call);
void run_expand(Call& call);
void run_slice(Call& call);
void run_slice_gradient(Call& call);
void run_concatenate(Call& call);
void run_transpose(Call& call);

void run_check_gradients(Call& call);
void run_gradient_factor(Call& call);
void run_learning_rate(Call& call);
void run_adamw(Call& call);
void run_sgd(Call& call);
void run_ema(Call& call);
void run_advance(Call& call);
void run_update_scale(Call& call);
void run_observe_amax(Call& call);
void run_rescale(Call& call);

}  // namespace halfwatt::cuda
