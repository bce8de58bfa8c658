#pragma once

#include <cstdint>

#include "engine/backend/cuda/kernels/memory.h"

// Operands of fp8, and the scales that they are rounded with (section 1.9 of the facts on mixed
// precision). Scales and largest magnitudes are single f32 on the device.

namespace halfwatt::cuda {

/// Rows and columns of what products of fp8 take are multiples of this.
constexpr Index kFp8Multiple = 16;

/// The largest magnitude of `count` numbers, NaN if one of them is none; 0 of no numbers.
void largest_magnitude(Stream stream, const Elements& x, Index count, float* largest);

/// By what `largest` becomes the largest number of `format`; 1 where it is 0 or not finite.
void scale_for(Stream stream, DType format, const float* largest, float* scale);
/// inverse = 1 / scale.
void invert(Stream stream, const float* scale, float* inverse);

/// A matrix that is rounded to an fp8.
struct Quantised {
  Elements x;  ///< [rows, columns]
  Index rows, columns;
  bool transposed;  ///< `to` is [columns, rows]
  DType format;
  const float* scale;  ///< what numbers are multiplied with first
  std::byte* to;
  Index to_rows, to_columns;  ///< at least as many, to_columns a multiple of 16: zeros follow
};
/// What is too large becomes the format's largest number, a NaN stays one.
void quantise(Stream stream, const Quantised& job);

/// history[0] = the larger of itself and `amax`, NaN if one of them is; the rest of `steps`
/// elements as before. `to` may be `from`.
void observe_amax(Stream stream, const float* from, const float* amax, Index steps, float* to);

/// A history of `steps` and its scale one step further, unless it is skipped: op rescale.
struct Rescale {
  const float* history;
  const float* scale;
  const std::uint8_t* skip;
  Index steps;
  DType format;
  int margin;
  bool most_recent;  ///< or the largest of the history
  float* new_history;
  float* new_scale;
  float* amax;
};
void rescale(Stream stream, const Rescale& job);

}  // namespace halfwatt::cuda
