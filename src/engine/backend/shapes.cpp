#include "engine/backend/shapes.h"

#include "engine/ops/optimizer.h"

namespace halfwatt {
namespace {

std::string spread_refuses(const Shape& part, const Shape& whole) {
  return spread(part, whole) ? "" : "it is spread along extents that do not lie together";
}

}  // namespace

std::optional<Spread> spread(const Shape& part, const Shape& whole) {
  Spread found;
  std::size_t at = 0;
  for (; at < whole.rank() && part.last(at) == whole.last(at); ++at) {
    found.inner *= whole.last(at);
  }
  for (; at < whole.rank() && part.last(at) == 1; ++at) {
    found.times *= whole.last(at);
  }
  for (; at < whole.rank() && part.last(at) == whole.last(at); ++at) {
    found.outer *= whole.last(at);
  }
  return at == whole.rank() ? std::optional(found) : std::nullopt;
}

Around around(const Shape& shape, std::size_t axis) {
  Around parts{1, shape[axis], 1};
  for (std::size_t at = 0; at < shape.rank(); ++at) {
    if (at != axis) {
      (at < axis ? parts.outer : parts.inner) *= shape[at];
    }
  }
  return parts;
}

std::string add_refuses(const Node& node, std::span<const TensorType> inputs) {
  const Shape& whole = node.outputs[0].shape;
  if (!(inputs[0].shape == whole)) {
    return "its first term is spread";
  }
  const auto found = spread(inputs[1].shape, whole);
  return found && found->outer == 1 ? "" : "its second term is spread along inner extents";
}

std::string sum_refuses(const Node& node, std::span<const TensorType> inputs) {
  return spread_refuses(node.outputs[0].shape, inputs[0].shape);
}

std::string expand_refuses(const Node& node, std::span<const TensorType> inputs) {
  return spread_refuses(inputs[0].shape, node.outputs[0].shape);
}

// The random key behind the other inputs of an optimizer is for rounding.
std::string optimizer_refuses(const Node& node, std::span<const TensorType> inputs) {
  if (parameters_of(node.op, inputs.size()).rest == 0) {
    return "";
  }
  const DType dtype = inputs[0].dtype;
  if (dtype != DType::f16 && dtype != DType::bf16) {
    return "stochastic rounding is of f16 and bf16";
  }
  return inputs.back() == TensorType{DType::i64, Shape{3}} ? "" : "a random key is i64 3";
}

}  // namespace halfwatt
