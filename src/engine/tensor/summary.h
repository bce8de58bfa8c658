#pragma once

#include <cstdint>
#include <optional>

#include "engine/tensor/tensor.h"

namespace halfwatt {

/// What the elements of a tensor are like. NaN and infinities are counted and else left out.
struct ValueSummary {
  /// Of the finite elements; integers beyond 2^53 are rounded.
  struct Finite {
    double min = 0;
    double max = 0;
    double mean = 0;
    double rms = 0;  ///< root of the mean square
  };
  std::int64_t not_finite = 0;
  std::optional<Finite> finite;  ///< nullopt where no element is finite
};

/// A summary of all elements, true counting as 1; nullopt of a dtype whose elements cannot be
/// looked at here: 16-bit floats and fp8. Two passes over the elements.
std::optional<ValueSummary> summary(const TensorView& tensor);

}  // namespace halfwatt
