#pragma once

#include <cstddef>

#include "engine/graph/op.h"

namespace halfwatt {

/// What the parameters of an update share behind what each has of its own: factor, rate,
/// applied, skip.
inline constexpr std::size_t kSharedInputs = 4;

/// How the inputs of an optimizer are dealt out among its parameters; see ops/update.cpp.
struct ParametersOfUpdate {
  std::size_t each;   ///< inputs of one: itself, its moments, its gradient
  std::size_t count;  ///< parameters
  std::size_t rest;   ///< inputs behind the shared ones: a random key
  std::size_t shared() const { return each * count; }  ///< the first one that is shared
};

/// Of `op`, adamw or sgd, with as many inputs, which are enough for one parameter.
inline ParametersOfUpdate parameters_of(Op op, std::size_t inputs) {
  const std::size_t each = op == Op::adamw ? 4 : 3;
  const std::size_t own = inputs - kSharedInputs;
  return {each, own / each, own % each};
}

}  // namespace halfwatt
