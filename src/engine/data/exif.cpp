#include "engine/data/exif.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace halfwatt {
namespace {

constexpr std::string_view kPrefix{"Exif\0\0", 6};
constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;
constexpr std::uint32_t kLong = 4;
constexpr std::size_t kEntryBytes = 12;
constexpr std::uint32_t kMirroredTurnedBack = 8;  // the largest orientation

/// Numbers of a TIFF block in its byte order; none beyond its end.
class TiffBlock {
 public:
  explicit TiffBlock(std::span<const std::byte> bytes) : bytes_(bytes) {
    const auto first = number(0, 2);
    little_ = first == 0x4949U;  // II, the same in either order
    valid_ = (little_ || first == 0x4d4dU) && number(2, 2) == 42U;
  }

  bool valid() const { return valid_; }

  std::optional<std::uint32_t> number(std::size_t offset, std::size_t bytes) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
      return std::nullopt;
    }
    std::uint32_t value = 0;
    for (std::size_t at = 0; at < bytes; ++at) {
      const std::size_t place = offset + (little_ ? bytes - 1 - at : at);
      value = value << 8U | std::to_integer<std::uint32_t>(bytes_[place]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_ = false;
  bool valid_ = false;
};

/// The value of an entry that holds one whole number.
std::optional<std::uint32_t> single_value(const TiffBlock& tiff, std::size_t entry) {
  const auto type = tiff.number(entry + 2, 2);
  if (tiff.number(entry + 4, 4) != 1U || (type != kShort && type != kLong)) {
    return std::nullopt;
  }
  return tiff.number(entry + 8, type == kShort ? 2 : 4);
}

}  // namespace

std::optional<int> exif_orientation(std::span<const std::byte> block) {
  if (block.size() >= kPrefix.size() &&
      std::ranges::equal(block.first(kPrefix.size()), std::as_bytes(std::span(kPrefix)))) {
    block = block.subspan(kPrefix.size());
  }
  const TiffBlock tiff(block);
  const auto directory = tiff.number(4, 4);
  if (!tiff.valid() || !directory) {
    return std::nullopt;
  }
  const std::uint32_t entries = tiff.number(*directory, 2).value_or(0);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = std::size_t{*directory} + 2 + i * kEntryBytes;
    const auto tag = tiff.number(entry, 2);
    if (!tag) {
      return std::nullopt;
    }
    if (tag == kOrientationTag) {
      const auto value = single_value(tiff, entry);
      const bool known = value && *value >= 1 && *value <= kMirroredTurnedBack;
      return known ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
    }
  }
  return std::nullopt;
}

Image upright(Image image, int orientation) {
  HALFWATT_CHECK(orientation >= 1 && orientation <= 8, "an orientation is 1 to 8");
  if (orientation == kUpright) {
    return image;
  }
  const bool turned = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image shown{turned ? image.height : image.width, turned ? image.width : image.height, {}};
  shown.pixels.resize(image.pixels.size());
  auto to = shown.pixels.begin();
  for (std::int64_t y = 0; y < shown.height; ++y) {
    for (std::int64_t x = 0; x < shown.width; ++x) {
      const std::int64_t column = turned ? y : x;
      const std::int64_t row = turned ? x : y;
      const std::int64_t from_x = from_right ? image.width - 1 - column : column;
      const std::int64_t from_y = from_below ? image.height - 1 - row : row;
      to = std::copy_n(image.pixels.begin() + 3 * (from_y * image.width + from_x), 3, to);
    }
  }
  return shown;
}

}  // namespace halfwatt
