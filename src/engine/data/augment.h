#pragma once

#include <cstdint>
#include <optional>

#include "engine/data/resize.h"

namespace halfwatt {

/// How pictures differ from one epoch to the next: torchvision's RandomResizedCrop, and a
/// mirror. The defaults are timm's.
struct Augmentation {
  double least_area = 0.08, most_area = 1.0;           ///< shares of the picture
  double least_ratio = 3.0 / 4, most_ratio = 4.0 / 3;  ///< width to height
  double flip = 0.5;                                   ///< how often it is mirrored
  std::optional<Filter> filter;                        ///< none: bilinear or bicubic, by chance
};

/// Which view of which picture.
struct ViewKey {
  std::uint64_t seed;
  std::uint64_t epoch;   ///< below 2^32
  std::uint64_t sample;  ///< place of the picture in its set
};

/// What is cut out of a picture, how it is resized, and whether it is then mirrored.
struct TrainingView {
  Box crop;
  Filter filter;
  bool flip;
  bool operator==(const TrainingView&) const = default;
};

/// The view of a picture of that size: ten tries for a crop of a random area and ratio that
/// fits, then the largest one of an allowed ratio in the middle. Follows from its arguments
/// alone, whatever the thread, order or batch.
TrainingView training_view(const Augmentation& how,
                           std::int64_t width,
                           std::int64_t height,
                           const ViewKey& key);

/// Whether that view is mirrored, whatever the size of the picture.
bool mirrored(const Augmentation& how, const ViewKey& key);

/// What that view at side `size` shows, before it is mirrored: `to_tensor` does that.
ResizedPart part_of(const TrainingView& view, std::int64_t size);
/// Its pixels.
Image pixels_of(const Image& image, const TrainingView& view, std::int64_t size);

}  // namespace halfwatt
