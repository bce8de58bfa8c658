#pragma once

#include <string_view>
#include <type_traits>

#include "engine/backend/cpu/call.h"

namespace halfwatt::cpu {

/// `count` numbers as a product of `format` takes its operand, in the workspace: each rounded
/// to it, and for an fp8 scaled before that.
const float* rounded_operand(Call& call, const float* from, Index count, DType format);

/// Input `at` of a product, which `as_is` has as `E`s, rounded to what attribute `math` says,
/// if it is there.
template <class E>
const E* operand(Call& call, const E* as_is, std::size_t at, std::string_view math) {
  if constexpr (std::is_same_v<E, float>) {
    if (call.attributes().has(math)) {
      return rounded_operand(call, as_is, call.input(at).type.shape.elements(),
                             call.attributes().dtype(math));
    }
  }
  return as_is;
}

template <class E>
const E* operand(Call& call, std::size_t at, std::string_view math) {
  return operand(call, call.as<E>(at), at, math);
}

/// The dtype whose elements a product computes with: what an operand that is rounded to a
/// narrower format is computed with is fp32.
inline DType computed_as(const Call& call) {
  const DType dtype = call.input(0).type.dtype;
  return call.attributes().has("math_a") && dtype != DType::f64 ? DType::f32 : dtype;
}

}  // namespace halfwatt::cpu
