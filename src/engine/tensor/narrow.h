#pragma once

#include <cstdint>

#include "engine/tensor/convert.h"

namespace halfwatt {

/// What numbers lost on their way into a format. Counts of elements.
struct Narrowing {
  std::int64_t elements = 0;
  std::int64_t not_finite = 0;   ///< before they were converted
  std::int64_t overflowed = 0;   ///< finite, and too large for the format
  std::int64_t underflowed = 0;  ///< not zero, and zero in the format
  std::int64_t subnormal = 0;    ///< not zero, and below the format's smallest normal number
  double largest = 0;            ///< magnitude of the finite ones before

  void add(const Narrowing& other);
};

/// convert(), and what was lost by it; float dtypes. Numbers that overflow are counted whether
/// they become infinity or saturate.
Narrowing narrow(const TensorView& from,
                 const TensorView& to,
                 Overflow overflow = Overflow::as_format);

}  // namespace halfwatt
