#pragma once

#include <cstdint>
#include <vector>

namespace halfwatt {

/// A decoded picture: `pixels` holds three bytes (red, green, blue) for each of width * height
/// places, rows from the top.
struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

}  // namespace halfwatt
