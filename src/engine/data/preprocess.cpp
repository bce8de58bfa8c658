#include "engine/data/preprocess.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

/// Which models, by how their names start, want what; the first that fits.
struct Row {
  std::string_view start;
  std::int64_t size;  ///< 0: any
  double crop;
  Filter filter;
  Normalisation normalisation;
};

// timm 1.0.31, the weights it loads by default; tests/golden/data/transforms.py holds it to
// that.
constexpr Row kRows[] = {
    {"vit_micro_", 0, 1.0, Filter::bicubic, kInceptionNormalisation},  // none of timm's
    {"vit_", 224, 0.9, Filter::bicubic, kInceptionNormalisation},
    {"vit_", 0, 1.0, Filter::bicubic, kInceptionNormalisation},
    {"", 0, 0.875, Filter::bicubic, kImagenetNormalisation},
};

/// Where a crop begins: half of what is left over, as Python rounds: halves to even.
std::int64_t middle(std::int64_t left_over) {
  const std::int64_t half = left_over / 2;
  return half + left_over % 2 * (half % 2);
}

/// One side of the evaluation view: the pixels of the resized picture that are seen.
struct Seen {
  std::int64_t first, count;
};
Seen seen_of(std::int64_t resized, std::int64_t size) {
  return resized < size ? Seen{0, resized} : Seen{middle(resized - size), size};
}

/// What the 256 values of a byte become in each colour.
template <class Element>
using Codes = std::array<std::array<Element, 256>, 3>;

/// Normalised: two divisions a value, not a pixel.
template <DType dtype>
Codes<Stored<dtype>> codes(const Normalisation& by) {
  Codes<Stored<dtype>> all;
  for (std::size_t colour = 0; colour < all.size(); ++colour) {
    for (std::size_t value = 0; value < all[colour].size(); ++value) {
      all[colour][value] = encode<dtype>(
          normalised(static_cast<std::uint8_t>(value), by.mean[colour], by.deviation[colour]));
    }
  }
  return all;
}

/// As they are.
Codes<std::uint8_t> same_codes() {
  Codes<std::uint8_t> all;
  for (auto& codes : all) {
    std::iota(codes.begin(), codes.end(), std::uint8_t{0});
  }
  return all;
}

template <class Element>
void write(const Image& image,
           const Codes<Element>& codes,
           bool flip,
           std::span<std::byte> to) {
  HALFWATT_CHECK(to.size() == image.pixels.size() * sizeof(Element),
                 "memory for three numbers of every pixel");
  const auto& [red, green, blue] = codes;
  const std::int64_t plane = image.width * image.height;
  const std::int64_t step = flip ? -1 : 1;
  const std::uint8_t* pixel = image.pixels.data();
  auto* row = reinterpret_cast<Element*>(to.data()) + (flip ? image.width - 1 : 0);
  for (std::int64_t y = 0; y < image.height; ++y, row += image.width) {
    for (std::int64_t x = 0; x < image.width; ++x, pixel += 3) {
      Element* const element = row + x * step;
      element[0] = red[pixel[0]];
      element[plane] = green[pixel[1]];
      element[2 * plane] = blue[pixel[2]];
    }
  }
}

}  // namespace

Preprocessing preprocessing_of(std::string_view model, std::int64_t size) {
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) {
    return model.substr(0, one.start.size()) == one.start &&
           (one.size == 0 || one.size == size);
  });
  return {size, row->crop, row->filter, row->normalisation, PassOrder::rows};
}

Image evaluation_view(const Image& image, const Preprocessing& how) {
  HALFWATT_CHECK(image.width > 0 && image.height > 0, "an image has pixels");
  return framed(resize_part(image, evaluation_part(image.width, image.height, how)), how.size);
}

ResizedPart evaluation_part(std::int64_t width, std::int64_t height, const Preprocessing& how) {
  const auto shorter =
      static_cast<std::int64_t>(std::floor(static_cast<double>(how.size) / how.crop));
  const auto resized = [&](std::int64_t side, std::int64_t other) {
    return side <= other ? shorter
                         : static_cast<std::int64_t>(static_cast<double>(shorter * side) /
                                                     static_cast<double>(other));
  };
  const Resizing resizing = {{0, 0, width, height},
                             resized(width, height),
                             resized(height, width),
                             how.filter,
                             how.order};
  const Seen across = seen_of(resizing.width, how.size);
  const Seen down = seen_of(resizing.height, how.size);
  return {resizing, {across.first, down.first, across.count, down.count}};
}

Image framed(Image part, std::int64_t size) {
  HALFWATT_CHECK(part.width <= size && part.height <= size, "a view holds its part");
  if (part.width == size && part.height == size) {
    return part;
  }
  Image view{size, size, {}};
  view.pixels.resize(static_cast<std::size_t>(size * size * 3));
  const std::int64_t left = (size - part.width) / 2;
  const std::int64_t top = (size - part.height) / 2;
  for (std::int64_t row = 0; row < part.height; ++row) {
    std::memcpy(view.pixels.data() + ((top + row) * size + left) * 3,
                part.pixels.data() + row * part.width * 3,
                static_cast<std::size_t>(part.width * 3));
  }
  return view;
}

void to_tensor(const Image& image,
               const Normalisation& normalisation,
               bool flip,
               std::span<std::byte> to,
               DType dtype) {
  switch (dtype) {
    case DType::f32:
      return write(image, codes<DType::f32>(normalisation), flip, to);
    case DType::f16:
      return write(image, codes<DType::f16>(normalisation), flip, to);
    case DType::bf16:
      return write(image, codes<DType::bf16>(normalisation), flip, to);
    case DType::u8:
      return write(image, same_codes(), flip, to);
    default:
      HALFWATT_CHECK(false, "pictures become u8, f32, f16 or bf16");
  }
}

}  // namespace halfwatt
