#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/data/decode.h"

namespace halfwatt {

/// A picture as its file holds it, not yet turned upright.
struct StoredImage {
  Image image;
  std::optional<int> orientation;  ///< 1 to 8, as EXIF counts them
  bool is_part = false;            ///< what was wanted of it, and not all of it
};

/// Decodes what begins as a JPEG does. Where a `part` is wanted, its rows are resized as they
/// come and the picture is never in memory; but all of it is decoded where it is progressive,
/// of inks, not stored upright, or resized columns first. Errors: as decode_image().
Result<StoredImage> decode_jpeg(std::span<const std::byte> bytes,
                                const std::string& name,
                                const DecodePolicy& policy,
                                const PartOf& part = {});

/// Decodes what begins as a PNG does. Errors: as decode_image().
Result<StoredImage> decode_png(std::span<const std::byte> bytes,
                               const std::string& name,
                               const DecodePolicy& policy);

/// Whether a picture of this size may be decoded. Errors: it has more pixels than the policy
/// allows, or more than a file of `file_bytes` can hold, `fewest_bytes` being what they take.
Result<void> check_size(const Image& image,
                        std::uint64_t fewest_bytes,
                        std::uint64_t file_bytes,
                        const DecodePolicy& policy);

}  // namespace halfwatt
