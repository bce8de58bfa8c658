#pragma once

#include <cstddef>
#include <span>

namespace halfwatt {

/// Decodes a JPEG with libjpeg alone at an eighth of its size, where all that is left to do is
/// undo the entropy coding, and drops the pixels: what decoding is held against. Ends the
/// program where it is no valid JPEG.
void decode_eighth(std::span<const std::byte> jpeg);

}  // namespace halfwatt
