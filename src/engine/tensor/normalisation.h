#pragma once

#include <array>
#include <cstdint>

namespace halfwatt {

/// What the bytes of pictures are normalised by: means and deviations of red, green, blue.
struct Normalisation {
  std::array<float, 3> mean;
  std::array<float, 3> deviation;
  bool operator==(const Normalisation&) const = default;
};

/// The number that a byte of a picture stands for. Loaders and devices all go by this, every
/// operation rounded by itself, so that nobody can tell by the bits who normalised.
constexpr float normalised(std::uint8_t value, float mean, float deviation) {
  return (static_cast<float>(value) / 255.0F - mean) / deviation;
}

}  // namespace halfwatt
