#include "engine/data/augment.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt {
namespace {

constexpr std::uint32_t kTries = 10;

double uniform(std::uint32_t bits, double low, double high) {
  return low + (high - low) * (static_cast<double>(bits) * 0x1p-32);
}
/// One of 0 to count - 1.
std::int64_t one_of(std::uint32_t bits, std::int64_t count) {
  HALFWATT_CHECK(count > 0 && count <= std::int64_t{1} << 31, "sides are below 2^31");
  return static_cast<std::int64_t>(std::uint64_t{bits} * static_cast<std::uint64_t>(count) >>
                                   32);
}
/// To nearest, halves to even, as Python does.
std::int64_t rounded(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

/// Words: area, ratio, top, left.
std::optional<Box> tried(const Augmentation& how,
                         std::int64_t width,
                         std::int64_t height,
                         const std::array<std::uint32_t, 4>& words) {
  const double picture = static_cast<double>(width) * static_cast<double>(height);
  const double area = picture * uniform(words[0], how.least_area, how.most_area);
  const double ratio =
      std::exp(uniform(words[1], std::log(how.least_ratio), std::log(how.most_ratio)));
  Box box;
  box.width = rounded(std::sqrt(area * ratio));
  box.height = rounded(std::sqrt(area / ratio));
  if (box.width <= 0 || box.width > width || box.height <= 0 || box.height > height) {
    return std::nullopt;
  }
  box.top = one_of(words[2], height - box.height + 1);
  box.left = one_of(words[3], width - box.width + 1);
  return box;
}

Box in_the_middle(const Augmentation& how, std::int64_t width, std::int64_t height) {
  Box box = {0, 0, width, height};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < how.least_ratio) {
    box.height = rounded(static_cast<double>(width) / how.least_ratio);
  } else if (ratio > how.most_ratio) {
    box.width = rounded(static_cast<double>(height) * how.most_ratio);
  }
  box.left = (width - box.width) / 2;
  box.top = (height - box.height) / 2;
  return box;
}

}  // namespace

TrainingView training_view(const Augmentation& how,
                           std::int64_t width,
                           std::int64_t height,
                           const ViewKey& key) {
  const KeyedRandom choices(key.seed, "data.view", key.epoch);
  const auto words = choices.block(key.sample, 0);
  TrainingView view = {
      in_the_middle(how, width, height),
      how.filter.value_or(words[1] % 2 == 0 ? Filter::bilinear : Filter::bicubic),
      mirrored(how, key)};
  const KeyedRandom crops(key.seed, "data.crop", key.epoch);
  for (std::uint32_t attempt = 0; attempt < kTries; ++attempt) {
    if (const auto box = tried(how, width, height, crops.block(key.sample, attempt))) {
      view.crop = *box;
      break;
    }
  }
  return view;
}

bool mirrored(const Augmentation& how, const ViewKey& key) {
  const KeyedRandom choices(key.seed, "data.view", key.epoch);
  return uniform(choices.block(key.sample, 0)[0], 0, 1) < how.flip;
}

ResizedPart part_of(const TrainingView& view, std::int64_t size) {
  return whole(Resizing{view.crop, size, size, view.filter});
}

Image pixels_of(const Image& image, const TrainingView& view, std::int64_t size) {
  return resize_part(image, part_of(view, size));
}

}  // namespace halfwatt
