#include "engine/data/resize.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/data/row_resize.h"

namespace halfwatt {
namespace {

/// Two resizes of one side each: a side that stays as it is keeps every bit.
Image resize_columns_first(const Image& image,
                           const ResizedPart& wanted,
                           const Resampler& with) {
  const auto& [how, part] = wanted;
  const Image lower = resize_part(image,
                                  {{how.from, how.from.width, how.height, how.filter},
                                   {0, part.top, how.from.width, part.height}},
                                  with);
  return resize_part(lower,
                     {{whole(lower), how.width, part.height, how.filter},
                      {part.left, 0, part.width, part.height}},
                     with);
}

/// Takes the last rows of a picture, that nothing may be read behind, from a copy.
void take_copied(RowResize& resize, const Rows<const std::uint8_t>& rows, std::int64_t count) {
  const std::int64_t bytes = resize.from().width * 3;
  const std::int64_t stride = bytes + kReadBehind;
  std::vector<std::uint8_t> copy(static_cast<std::size_t>((count + kRowsAtOnce - 1) * stride));
  for (std::int64_t row = 0; row < count; ++row) {
    std::memcpy(copy.data() + row * stride, rows.first + row * rows.stride,
                static_cast<std::size_t>(bytes));
  }
  resize.take({copy.data(), stride}, count);
}

}  // namespace

/// python-pillow/Pillow#9549.
bool columns_first(const Resizing& how) {
  const std::int64_t rows = how.from.height - how.height;
  const std::int64_t columns = how.from.width - how.width;
  return how.order == PassOrder::pillow13 && columns != 0 &&
         rows > std::max<std::int64_t>(0, 2 * columns);
}

Image resize(const Image& image,
             const Box& from,
             std::int64_t width,
             std::int64_t height,
             Filter filter) {
  return resize_part(image, whole(Resizing{from, width, height, filter}));
}

Image resize_part(const Image& image, const ResizedPart& wanted, const Resampler& with) {
  const std::int64_t size = std::ssize(image.pixels);
  HALFWATT_CHECK(size == image.width * image.height * 3,
                 "an image has three bytes for every pixel");
  HALFWATT_CHECK(within(wanted.how.from, image.width, image.height),
                 "the box is within the image");
  HALFWATT_CHECK(within(wanted.part, wanted.how.width, wanted.how.height),
                 "the part is within the result");
  if (columns_first(wanted.how)) {
    return resize_columns_first(image, wanted, with);
  }
  RowResize resize(wanted, with);
  const Box& from = resize.from();
  const std::int64_t stride = image.width * 3;
  const std::int64_t begin = from.top * stride + from.left * 3;
  const std::int64_t readable =
      (size - begin - from.width * 3 - kReadBehind + stride) / stride;  // rows from `begin` on
  const std::int64_t in_place =
      std::clamp<std::int64_t>(readable, 0, from.height) / kRowsAtOnce * kRowsAtOnce;
  const std::uint8_t* const first = image.pixels.data() + begin;
  resize.take({first, stride}, in_place);
  take_copied(resize, {first + in_place * stride, stride}, from.height - in_place);
  return resize.result();
}

}  // namespace halfwatt
