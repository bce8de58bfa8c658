#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engine/data/image.h"

namespace halfwatt {

/// The orientation of a picture that is stored as it is shown.
inline constexpr int kUpright = 1;

/// The orientation (1 to 8) that an EXIF block names, with or without `Exif\0\0` in front.
/// Unknown where there is none or the block is malformed: a picture is no worse for that.
/// Source: Exif 2.32, section 4.6.4, tag 0112; TIFF 6.0, section 2.
std::optional<int> exif_orientation(std::span<const std::byte> block);

/// The picture as a viewer shows it, stored with this orientation (1 to 8).
Image upright(Image image, int orientation);

}  // namespace halfwatt
