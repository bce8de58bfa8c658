#pragma once

#include <cstdint>
#include <vector>

namespace halfwatt {

/// A picture as it was decoded, before it is resized.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  ///< RGB, rows from the top: 3 * width * height of them
};

}  // namespace halfwatt
