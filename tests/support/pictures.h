#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/data/image.h"

namespace halfwatt {

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// A picture that has no two equal rows or columns, drawn from `seed`.
Image drawn_image(std::int64_t width, std::int64_t height, std::uint64_t seed = 1);

/// How a JPEG is written.
struct JpegRecipe {
  int quality = 90;
  int wide = 2;  ///< brightness samples beside each other for one of colour
  int high = 2;  ///< and above each other
  bool progressive = false;
  bool arithmetic = false;
  bool apart = false;  ///< a scan for each component
  int components = 3;  ///< 3: YCbCr; others: as many channels, without meaning
};

/// `image` as a JPEG; with other than three components each is a copy of one of its channels.
std::string jpeg_of(const Image& image, const JpegRecipe& recipe = {});

/// `jpeg` with `segment` (from its ff on) right behind its SOI.
std::string with_segment(const std::string& jpeg, const std::string& segment);

/// Where the first marker ff `code` of `jpeg` is.
std::size_t marker_at(const std::string& jpeg, unsigned char code);

/// An APP1 segment of 36 bytes that names this orientation.
std::string exif_segment(int orientation);

/// A chunk of a PNG: its length, its four letters, data and checksum.
std::string png_chunk(const std::string& kind, const std::string& data);

/// The first chunk of a PNG behind its signature.
struct PngHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int depth = 8;
  int colour = 2;  ///< 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
  bool interlaced = false;
};

/// Signature and header of a PNG.
std::string png_start(const PngHeader& header);

/// `data` as zlib packs it as well as it can.
std::string deflated(const std::string& data);

/// A PNG of rows that lie one behind the other, not yet with filter bytes; `chunks` go before
/// its data.
std::string png_of(const PngHeader& header,
                   const std::string& rows,
                   const std::string& chunks = "");

/// `image` as a PNG of 8-bit RGB.
std::string png_of(const Image& image);

/// `image` as a PNG of 8-bit RGBA, interlaced, with this alpha everywhere.
std::string interlaced_png_of(const Image& image, std::uint8_t alpha);

}  // namespace halfwatt
