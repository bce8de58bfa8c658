#include "engine/backend/cpu/bindings.h"

#include <array>

namespace halfwatt::cpu {
namespace {

std::string spreads(const Shape& part, const Shape& whole) {
  return repeats(part, whole) > 0 ? "" : "it is spread along inner extents";
}

std::string add_refuses(const Node& node, std::span<const TensorType> inputs) {
  const Shape& whole = node.outputs[0].shape;
  if (!(inputs[0].shape == whole)) {
    return "its first term is spread";
  }
  return spreads(inputs[1].shape, whole);
}

std::string sum_refuses(const Node& node, std::span<const TensorType> inputs) {
  return spreads(node.outputs[0].shape, inputs[0].shape);
}

std::string expand_refuses(const Node& node, std::span<const TensorType> inputs) {
  const Shape& whole = node.outputs[0].shape;
  const Shape& part = inputs[0].shape;
  // Along one extent: [B, 1, D] to [B, N, D].
  return part.elements() == 0 || whole.elements() % part.elements() == 0
             ? ""
             : "it is spread along several extents";
}

constexpr std::array kBindings = {
    Binding{Op::constant, run_constant},
    Binding{Op::write, run_write},
    Binding{Op::matmul, run_matmul},
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
    Binding{Op::patches, run_patches},
    Binding{Op::transfer, run_write},
    Binding{Op::check_gradients, run_check_gradients},
    Binding{Op::gradient_factor, run_gradient_factor},
    Binding{Op::learning_rate, run_learning_rate},
    Binding{Op::adamw, run_adamw},
    Binding{Op::sgd, run_sgd},
    Binding{Op::ema, run_ema},
    Binding{Op::advance, run_advance},
    Binding{Op::update_scale, run_update_scale},
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

Index repeats(const Shape& part, const Shape& whole) {
  // From the innermost extent on equal, then only ones.
  std::size_t at = 0;
  while (at < part.rank() && at < whole.rank() && part.last(at) == whole.last(at)) {
    ++at;
  }
  for (std::size_t rest = at; rest < part.rank(); ++rest) {
    if (part.last(rest) != 1) {
      return 0;
    }
  }
  const Index elements = part.elements();
  return elements == 0 ? 0 : whole.elements() / elements;
}

}  // namespace halfwatt::cpu
