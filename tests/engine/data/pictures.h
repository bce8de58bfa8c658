#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "engine/data/image.h"

namespace halfwatt {

/// The picture that tests/golden/data/pictures.py draws.
inline Image drawn_picture(std::uint64_t seed, std::int64_t width, std::int64_t height) {
  Rng rng(seed);
  Image image{width, height, {}};
  image.pixels.resize(static_cast<std::size_t>(width * height * 3));
  for (std::uint8_t& byte : image.pixels) {
    byte = static_cast<std::uint8_t>(
        std::clamp(static_cast<int>(rng.uniform() * 765) - 255, 0, 255));
  }
  return image;
}

/// One row of grey pixels.
inline Image grey_row(const std::vector<int>& values) {
  Image image{static_cast<std::int64_t>(values.size()), 1, {}};
  for (const int value : values) {
    image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(value));
  }
  return image;
}

}  // namespace halfwatt
