#pragma once

#include <cstdint>
#include <vector>

namespace halfwatt {

/// A picture as it was decoded, before it is resized.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  ///< RGB, rows from the top: 3 * width * height of them
  bool turned = false;               ///< from how it is stored, as its EXIF orientation says
};

/// A part of a picture, in whole pixels.
struct Box {
  std::int64_t left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
};

/// All of `image`.
inline Box whole(const Image& image) { return {0, 0, image.width, image.height}; }

/// Whether `box` is a part of a picture of this size, and not empty.
inline bool within(const Box& box, std::int64_t width, std::int64_t height) {
  return box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 &&
         box.left <= width - box.width && box.top <= height - box.height;
}

}  // namespace halfwatt
