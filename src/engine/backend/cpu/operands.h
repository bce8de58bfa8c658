#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include "engine/backend/cpu/call.h"
#include "engine/ops/matmul.h"

namespace halfwatt::cpu {

/// The largest magnitude of `count` numbers, NaN if one of them is none; 0 of no numbers.
float largest_magnitude(const float* from, Index count);

/// Operand `at` of a product, 0 or 1, which lies at `from` and whose product takes `format`, in
/// the workspace: each number rounded to that, and for an fp8 scaled before and after. The
/// scale is the input `scale`; nullopt: the operand's largest magnitude sets it. A product that
/// observes has that magnitude in output 1 or 2.
const float* rounded_operand(Call& call,
                             const float* from,
                             std::size_t at,
                             DType format,
                             std::optional<std::size_t> scale);

/// Input `at` of a product, which `as_is` has as `E`s, rounded to what attribute `math` says,
/// if it is there.
template <class E>
const E* operand(Call& call, const E* as_is, std::size_t at, std::string_view math) {
  if constexpr (std::is_same_v<E, float>) {
    if (call.attributes().has(math)) {
      const auto scales =
          call.node().op == Op::matmul ? matmul_inputs(call.node()).scales : std::nullopt;
      return rounded_operand(call, as_is, at, call.attributes().dtype(math),
                             scales ? std::optional(*scales + at) : std::nullopt);
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
