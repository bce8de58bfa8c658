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

/// What becomes of `from` when it is cut out and then resized: the pixels that Pillow's
/// `image.crop(from).resize((width, height), filter)` has, each of them. `from` lies within the
/// image, and neither it nor the result is empty: anything else is a broken invariant.
Image resize(const Image& image,
             const Box& from,
             std::int64_t width,
             std::int64_t height,
             Filter filter);

/// `part` of what `resize` makes, without computing the rest.
Image resize_part(const Image& image,
                  const Resizing& how,
                  const Box& part,
                  const Resampler& with = fastest_resampler());

}  // namespace halfwatt
