#include "engine/backend/cuda/bindings.h"

#include <fmt/format.h>

#include <array>

#include "engine/backend/cuda/kernels/attention.h"
#include "engine/backend/cuda/kernels/elements.h"
#include "engine/backend/cuda/kernels/quantise.h"
#include "engine/backend/cuda/planted.h"
#include "engine/backend/shapes.h"
#include "engine/plan/plan.h"

namespace halfwatt::cuda {
namespace {

std::string attention_refuses(const Node& node, std::span<const TensorType> inputs) {
  const Shape& qkv = inputs[node.op == Op::attention ? 0 : 1].shape;
  const Index width = qkv[2] / 3 / node.attributes.integer("heads");
  return width <= kWidestHead
             ? ""
             : fmt::format("heads of {}, needs {} at most", width, kWidestHead);
}

std::string normalise_refuses(const Node&, std::span<const TensorType> inputs) {
  const Index channels = inputs[0].shape[1];
  return channels <= kMostChannels ? ""
                                   : fmt::format("pictures of {} channels, needs {} at most",
                                                 channels, kMostChannels);
}

constexpr std::array kBindings = {
    Binding{Op::constant, run_constant},
    Binding{Op::write, run_write},
    Binding{Op::matmul, run_matmul},
    Binding{Op::convolution, run_convolution},
    Binding{Op::convolution_input_gradient, run_convolution_input_gradient},
    Binding{Op::convolution_weight_gradient, run_convolution_weight_gradient},
    Binding{Op::attention, run_attention, attention_refuses},
    Binding{Op::attention_gradient, run_attention_gradient, attention_refuses},
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
    Binding{Op::normalise, run_normalise, normalise_refuses},
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

// What casts come from and lead to; all else computes with fewer.
bool is_stored(Op op, DType dtype) {
  return op == Op::cast || op == Op::constant || !is_float(dtype) || dtype == DType::f32 ||
         dtype == DType::tf32 || dtype == DType::f16 || dtype == DType::bf16;
}

// What of fp8 a product cannot do.
std::string fp8_refuses(const Node& node, std::span<const TensorType> inputs, bool has_fp8) {
  if (!has_fp8) {
    return "products of fp8 need a card of compute capability 8.9 or more";
  }
  if (node.op != Op::matmul || inputs[0].dtype == DType::f64) {
    return "fp8 is for products of matrices alone";
  }
  const auto math = [&](const char* key) {
    return node.attributes.has(key) ? node.attributes.dtype(key) : DType::f32;
  };
  if (bytes_of(math("math_a")) != 1 || bytes_of(math("math_b")) != 1 ||
      (math("math_a") == DType::e5m2 && math("math_b") == DType::e5m2)) {
    return "products of fp8 are of two operands of fp8, one of them e4m3";
  }
  const Shape& b = inputs[1].shape;
  const Index columns = node.attributes.flag("transpose_b") ? b.rows() : b.last(0);
  return columns % kFp8Multiple == 0
             ? ""
             : fmt::format("a product of fp8 of {} columns, needs a multiple of {}", columns,
                           kFp8Multiple);
}

}  // namespace

std::byte* Call::scratch(std::size_t bytes) {
  const std::size_t at = planted(Fault::shared_scratch) ? 0 : used_;
  std::byte* const piece = workspace_ != nullptr ? workspace_ + at : nullptr;
  used_ += aligned(bytes);
  return piece;
}

const Binding* binding(Op op) {
  for (const Binding& row : kBindings) {
    if (row.op == op) {
      return &row;
    }
  }
  return nullptr;
}

std::string why_refused(const Node& node, std::span<const TensorType> inputs, bool has_fp8) {
  const Binding* const row = binding(node.op);
  if (row == nullptr) {
    return "no kernel for this op";
  }
  for (const char* const key : {"math_a", "math_b"}) {
    if (node.attributes.has(key) && node.attributes.dtype(key) != DType::tf32) {
      if (std::string reason = fp8_refuses(node, inputs, has_fp8); !reason.empty()) {
        return reason;
      }
    }
  }
  const auto refused_dtype = [&](std::span<const TensorType> types) -> std::string {
    for (const TensorType& type : types) {
      if (!is_stored(node.op, type.dtype)) {
        return fmt::format("a tensor of {}, needs f32, tf32, f16 or bf16", text(type.dtype));
      }
    }
    return "";
  };
  for (const std::span<const TensorType> types :
       {inputs, std::span<const TensorType>(node.outputs)}) {
    if (std::string reason = refused_dtype(types); !reason.empty()) {
      return reason;
    }
  }
  return row->refuses != nullptr ? row->refuses(node, inputs) : "";
}

}  // namespace halfwatt::cuda
