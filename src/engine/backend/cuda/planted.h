#pragma once

#include <cstdint>

namespace halfwatt::cuda {

/// What tests put wrong, one at a time, to prove that the checks of this room see it.
enum class Fault : std::uint8_t {
  none,
  mask_column,      ///< attention masks the last key, too
  tf32_in_fp32,     ///< products of fp32 are computed as those of tf32
  lost_found_inf,   ///< the last gradient's "not finite" is not recorded
  stale_copy,       ///< copies of parameters are not refreshed by an update
  lost_part,        ///< of a sum in parts, the last part is not added
  shared_scratch,   ///< pieces of a workspace overlap: each is written before the last is read
  lost_term,        ///< a product leaves out the last term of its sums
  no_bias,          ///< a product leaves out its bias
  no_smoothing,     ///< a loss takes labels without their smoothing
  wrong_fp8_scale,  ///< a product of fp8 takes the first operand's scale for both
};

inline Fault planted_fault = Fault::none;

/// Puts a fault into all that is prepared and enqueued from now on; none takes it away. For
/// tests, which have one thread.
inline void plant(Fault fault) { planted_fault = fault; }

/// Whether it is there: never, but in its test.
inline bool planted(Fault fault) { return planted_fault == fault; }

}  // namespace halfwatt::cuda
