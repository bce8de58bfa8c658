#include "engine/backend/cpu/bindings.h"

#include <array>

#include "engine/backend/shapes.h"

namespace halfwatt::cpu {
namespace {

constexpr std::array kBindings = {
    Binding{Op::constant, run_constant},
    Binding{Op::write, run_write},
    Binding{Op::matmul, run_matmul},
    Binding{Op::linear, run_linear},
    Binding{Op::convolution, run_convolution},
    Binding{Op::convolution_input_gradient, run_convolution_input_gradient},
    Binding{Op::convolution_weight_gradient, run_convolution_weight_gradient},
    Binding{Op::attention, run_attention},
    Binding{Op::attention_gradient, run_attention_gradient},
    Binding{Op::layer_norm, run_layer_norm},
    Binding{Op::layer_norm_gradient, run_layer_norm_gradient},
    Binding{Op::add_layer_norm, run_add_layer_norm},
    Binding{Op::cross_entropy, run_cross_entropy},
    Binding{Op::cross_entropy_gradient, run_cross_entropy_gradient},
    Binding{Op::binary_cross_entropy, run_binary_cross_entropy},
    Binding{Op::binary_cross_entropy_gradient, run_binary_cross_entropy_gradient},
    Binding{Op::mean, run_mean},
    Binding{Op::sum_to, run_sum_to, sum_refuses},
    Binding{Op::cast, run_cast},
    Binding{Op::normalise, run_normalise},
    Binding{Op::add, run_add, add_refuses},
    Binding{Op::scale, run_scale},
    Binding{Op::gelu, run_gelu},
    Binding{Op::gelu_gradient, run_gelu_gradient},
    Binding{Op::dropout, run_dropout},
    Binding{Op::drop_path, run_drop_path},
    Binding{Op::expand, run_expand, expand_refuses},
    Binding{Op::slice, run_slice},
    Binding{Op::slice_gradient, run_slice_gradient},
    Binding{Op::concatenate, run_concatenate},
    Binding{Op::transpose, run_transpose},
    Binding{Op::transfer, run_write},
    Binding{Op::check_gradients, run_check_gradients},
    Binding{Op::gradient_factor, run_gradient_factor},
    Binding{Op::learning_rate, run_learning_rate},
    Binding{Op::adamw, run_adamw, optimizer_refuses},
    Binding{Op::sgd, run_sgd, optimizer_refuses},
    Binding{Op::ema, run_ema},
    Binding{Op::advance, run_advance},
    Binding{Op::update_scale, run_update_scale},
    Binding{Op::observe_amax, run_observe_amax},
    Binding{Op::rescale, run_rescale},
};

}  // namespace

const Binding* binding(Op op) {
  for (const Binding& row : kBindings) {
    if (row.op == op) {
      return &row;
    }
  }
  return nullptr;
}

RandomKey random_key(const Call& call, std::size_t input) {
  if (call.is_dry()) {
    return {};
  }
  const auto* const words = reinterpret_cast<const std::int64_t*>(call.input(input).data);
  return {static_cast<std::uint64_t>(words[0]), static_cast<std::uint64_t>(words[1]),
          static_cast<std::uint64_t>(words[2])};
}

}  // namespace halfwatt::cpu
