#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/backend/cpu/call.h"
#include "engine/ops/op_def.h"

namespace halfwatt::cpu {

/// How the CPU computes an op: one row of the table.
struct Binding {
  Op op;
  void (*run)(Call& call);
  /// Why a node is refused; empty if it is not. nullptr: none is.
  std::string (*refuses)(const Node& node, std::span<const TensorType> inputs) = nullptr;
};

/// The row of `op`; nullptr if the CPU does not compute it.
const Binding* binding(Op op);

// What the rows name, each in the file of its kind.
void run_matmul(Call& call);
void run_linear(Call& call);
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

/// Calls `function(E())` with the E that a call on tensors of `dtype` computes with: double of
/// f64, Bf16 of bf16, else float, into which and out of which everything narrower is converted.
template <class Function>
void with_element(DType dtype, Function&& function) {
  // NOLINTNEXTLINE(bugprone-branch-clone): not instantiated, the calls look alike
  if (dtype == DType::f64) {
    function(double());
  } else if (dtype == DType::bf16) {
    function(Bf16());
  } else {
    function(float());
  }
}

/// The same with double of f64 and float of everything else.
template <class Function>
void with_real(DType dtype, Function&& function) {
  // NOLINTNEXTLINE(bugprone-branch-clone): as above
  if (dtype == DType::f64) {
    function(double());
  } else {
    function(float());
  }
}

/// What random numbers of a step follow from; see KeyedRandom.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t attempt = 0;
  std::uint64_t first_sample = 0;
};

/// The key that an input holds; zeros of a dry call.
RandomKey random_key(const Call& call, std::size_t input);

}  // namespace halfwatt::cpu
