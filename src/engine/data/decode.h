#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/data/image.h"
#include "engine/data/resize.h"

namespace halfwatt {

/// What is decoded and how; README.md of this room has the rest of the policy, which is fixed.
struct DecodePolicy {
  /// A picture whose header names more pixels is refused before anything is allocated for it.
  /// As Pillow: three bytes a pixel in half a GiB.
  std::int64_t most_pixels = 178'956'970;
  /// A progressive JPEG of more scans is refused: each walks over the whole picture, so that
  /// a short file can ask for hours. Encoders write about ten.
  int most_scans = 500;
  /// Turns and mirrors the picture as its EXIF orientation says, as a viewer shows it.
  bool apply_orientation = true;
};

/// The part that is wanted of a picture of this size, and at which size.
using PartOf = std::function<ResizedPart(std::int64_t width, std::int64_t height)>;

/// Decodes a JPEG or a PNG, told apart by their first bytes and not by `name`, to RGB. Where a
/// `part` is given, it is that of the picture, resized: what resize_part() makes, in less time
/// and memory.
/// Errors, in one line that begins with `name`: what was found and what was needed. A picture
/// of which any pixel is missing or had to be guessed is an error. Safe to call from any
/// number of threads.
Result<Image> decode_image(std::span<const std::byte> bytes,
                           const std::string& name,
                           const DecodePolicy& policy,
                           const PartOf& part = {});

/// That part of a picture that is decoded already.
Image part_of(const Image& image, const PartOf& part);

}  // namespace halfwatt
