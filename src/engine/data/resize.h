#pragma once

#include <cstdint>

#include "engine/data/axis.h"
#include "engine/data/image.h"
#include "engine/data/resampler.h"

namespace halfwatt {

/// Which pass comes first. Between the passes there are 8 bits, so it shows: in a photo one
/// byte of six differs, nearly always by one, and more where contrasts are hard.
enum class PassOrder : std::uint8_t {
  rows,      ///< rows, then columns: Pillow up to 12
  pillow13,  ///< Pillow 13: columns first where more than twice as many rows as columns go
};

/// What is resized and to what.
struct Resizing {
  Box from;
  std::int64_t width = 0, height = 0;
  Filter filter = Filter::bicubic;
  PassOrder order = PassOrder::rows;
};

/// Whether it does columns before rows.
bool columns_first(const Resizing& how);

/// What is wanted of a picture: `part` of what `how` makes of it.
struct ResizedPart {
  Resizing how;
  Box part;
};

/// All of what `how` makes.
inline ResizedPart whole(const Resizing& how) { return {how, {0, 0, how.width, how.height}}; }

/// What becomes of `from` when it is cut out and then resized: the pixels that Pillow's
/// `image.crop(from).resize((width, height), filter)` has, each of them. `from` lies within the
/// image, and neither it nor the result is empty: anything else is a broken invariant.
Image resize(const Image& image,
             const Box& from,
             std::int64_t width,
             std::int64_t height,
             Filter filter);

/// A part of that, without computing the rest.
Image resize_part(const Image& image,
                  const ResizedPart& wanted,
                  const Resampler& with = fastest_resampler());

}  // namespace halfwatt
