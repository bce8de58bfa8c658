#pragma once

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <vector>

#include "engine/ops/op_def.h"

namespace halfwatt {

// Words that the rules of several ops share.

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

/// What statistics and sums of `dtype` are kept in.
inline DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// The one output that is like the first input.
inline Result<Types> like_first(const Node&, Inputs inputs) { return Types{inputs[0]}; }

inline bool all_floats(Inputs inputs) {
  for (const TensorType& each : inputs) {
    if (!is_float(each.dtype)) {
      return false;
    }
  }
  return true;
}

inline Error not_floats(Inputs inputs) {
  for (const TensorType& each : inputs) {
    if (!is_float(each.dtype)) {
      return bad_input(fmt::format("an input of {}, needs floats", text(each)));
    }
  }
  return bad_input("needs floats");
}

inline Error differ(std::string_view what, const TensorType& one, const TensorType& other) {
  return bad_input(fmt::format("{} differ ({} and {})", what, text(one), text(other)));
}

inline std::size_t axis_of(const Node& node) {
  return static_cast<std::size_t>(node.attributes.integer("axis"));
}

}  // namespace halfwatt
