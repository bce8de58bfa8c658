#include "engine/data/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "engine/data/codecs.h"
#include "engine/data/exif.h"

namespace halfwatt {
namespace {

constexpr std::array<unsigned char, 3> kJpegStart = {0xff, 0xd8, 0xff};
constexpr std::array<unsigned char, 8> kPngStart = {0x89, 'P',  'N',  'G',
                                                    '\r', '\n', 0x1a, '\n'};

bool starts_with(std::span<const std::byte> bytes, std::span<const unsigned char> start) {
  return bytes.size() >= start.size() &&
         std::ranges::equal(bytes.first(start.size()), std::as_bytes(start));
}

std::string first_bytes(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes.first(std::min(bytes.size(), kPngStart.size()))) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<int>(each));
  }
  return text;
}

Result<StoredImage> decode_stored(std::span<const std::byte> bytes,
                                  const std::string& name,
                                  const DecodePolicy& policy,
                                  const PartOf& part) {
  if (starts_with(bytes, kJpegStart)) {
    return decode_jpeg(bytes, name, policy, part);
  }
  if (starts_with(bytes, kPngStart)) {
    return decode_png(bytes, name, policy);
  }
  return bad_input(fmt::format("{}: {}; needs a JPEG (ff d8 ff) or a PNG ({})", name,
                               bytes.empty() ? "empty" : "starts with " + first_bytes(bytes),
                               first_bytes(std::as_bytes(std::span(kPngStart)))));
}

}  // namespace

Result<void> check_size(const Image& image,
                        std::uint64_t fewest_bytes,
                        std::uint64_t file_bytes,
                        const DecodePolicy& policy) {
  // Neither side is above 2^31: the product is one that can be had.
  if (image.width * image.height > policy.most_pixels) {
    return bad_input(fmt::format("{}x{} are {} pixels; needs at most {}", image.width,
                                 image.height, image.width * image.height, policy.most_pixels));
  }
  if (fewest_bytes > file_bytes) {
    return bad_input(fmt::format("{}x{} pixels in {} bytes; needs at least {}", image.width,
                                 image.height, file_bytes, fewest_bytes));
  }
  return {};
}

Result<Image> decode_image(std::span<const std::byte> bytes,
                           const std::string& name,
                           const DecodePolicy& policy,
                           const PartOf& part) {
  try {
    Result<StoredImage> stored = decode_stored(bytes, name, policy, part);
    if (!stored) {
      return stored.error();
    }
    Image image = std::move(stored->image);
    if (policy.apply_orientation && stored->orientation.value_or(kUpright) != kUpright) {
      image = upright(std::move(image), *stored->orientation);
      image.turned = true;
    }
    return part && !stored->is_part ? part_of(image, part) : std::move(image);
  } catch (const std::bad_alloc&) {
    return bad_input(fmt::format("{}: its pixels do not fit into memory", name));
  }
}

Image part_of(const Image& image, const PartOf& part) {
  Image made = resize_part(image, part(image.width, image.height));
  made.turned = image.turned;
  return made;
}

}  // namespace halfwatt
