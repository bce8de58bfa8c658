#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/resampler.h"

namespace halfwatt {

/// What an output is made of when a picture is resized.
enum class Filter : std::uint8_t {
  box,
  bilinear,
  bicubic,  ///< Keys' with a = -0.5
};

/// From how many pixels to how many one side goes, and which of the new ones are wanted.
struct Side {
  std::int64_t from, to;
  std::int64_t begin, end;  ///< of [0, to): the wanted ones
};

/// The inputs that an output may be made of. None begins before those of the output in front.
Window inputs_of(const Side& side, Filter filter, std::int64_t output);
/// Those that the wanted ones may be made of.
Window inputs_of(const Side& side, Filter filter);

/// The weights that one side is resized with. They are Pillow's: a window that widens with the
/// step between outputs, so that shrinking does not alias, its weights computed in double,
/// divided by their sum, and rounded to 22 bits behind the point, halves away from zero.
class PixelAxis {
 public:
  PixelAxis(const Side& side, Filter filter);

  /// Inputs before this one, and from `end` on, have no weight in any window.
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  /// Inputs of the widest window.
  std::int64_t widest() const { return widest_; }

  /// Inputs of `place` (from 0, the first wanted output); they count from begin().
  /// None begins before the one in front of it.
  const Window& window(std::int64_t place) const {
    return windows_[static_cast<std::size_t>(place)];
  }
  std::int64_t places() const { return static_cast<std::int64_t>(windows_.size()); }
  /// Of all places from `first` on, for a Resampler.
  Weights weights(std::int64_t first = 0) const;

 private:
  void keep(std::int64_t place);

  std::int64_t begin_ = 0, end_ = 0, widest_ = 0, stride_ = 0;
  std::vector<Window> windows_;
  std::vector<std::int32_t> whole_;
  std::vector<std::int16_t> parts_;
};

}  // namespace halfwatt
