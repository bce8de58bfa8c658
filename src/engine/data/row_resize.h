#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/axis.h"
#include "engine/data/image.h"
#include "engine/data/resampler.h"
#include "engine/data/resize.h"

namespace halfwatt {

/// A resize, rows before columns, of a picture that comes row by row: never more than a few of
/// its rows need be in memory.
class RowResize {
 public:
  explicit RowResize(const ResizedPart& wanted, const Resampler& with = fastest_resampler());

  /// The part of the picture that it takes.
  const Box& from() const { return from_; }
  /// The next rows of from(): each begins there, and kReadBehind bytes may be read behind it.
  /// Where `count` is no multiple of kRowsAtOnce they are the last, and as many rows as would
  /// make it one may be read.
  void take(const Rows<const std::uint8_t>& rows, std::int64_t count);
  /// What was wanted, once all rows were taken.
  Image result();

 private:
  void make_rows_below();
  std::uint8_t* across_row(std::int64_t row) { return across_.data() + row % kept_ * stride_; }

  const Resampler& with_;
  PixelAxis columns_, rows_;
  Box from_;
  std::int64_t kept_, stride_;
  std::vector<std::uint8_t> across_;  ///< the last `kept_` rows behind the first pass
  std::int64_t taken_ = 0;            ///< rows, and those that made up a multiple
  std::int64_t place_ = 0;            ///< rows of the result that are done
  std::int64_t bytes_;                ///< of a row of the result
  Image result_;
  std::vector<const std::uint8_t*> window_;
};

}  // namespace halfwatt
