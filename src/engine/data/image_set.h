#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// Labelled images of one size, in memory.
struct ImageSet {
  Tensor images;                     ///< f32, or u8 that a device normalises: [N, C, H, W]
  std::vector<std::int64_t> labels;  ///< N of them
  std::int64_t classes = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// The images at these places, one after the other.
  ImageSet at(std::span<const std::int64_t> places) const;
};

/// What the pixels of a CSV mean.
struct PixelCsv {
  std::int64_t channels = 1;
  std::int64_t side = 8;
  double largest = 16;  ///< pixels 0 to this become -1 to 1
};

/// Reads a CSV, gzipped if its name ends in .gz: a line for an image, its pixels, then its
/// label. Errors: the file and the line, what was found there and what was needed.
Result<ImageSet> read_pixel_csv(const std::filesystem::path& path, const PixelCsv& format);
/// The same from the text of such a file, which errors call `name`.
Result<ImageSet> parse_pixel_csv(std::string_view text,
                                 const std::string& name,
                                 const PixelCsv& format);

/// Places of the images that are held out and of the others: of every label the same share, by
/// a shuffle that follows from `seed` alone.
struct Split {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> held_out;
};
Split stratified(std::span<const std::int64_t> labels, double held_out, std::uint64_t seed);
inline Split stratified(const ImageSet& set, double held_out, std::uint64_t seed) {
  return stratified(set.labels, held_out, seed);
}

/// 0 to count - 1 in an order that follows from `seed` and `epoch` alone.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

}  // namespace halfwatt
