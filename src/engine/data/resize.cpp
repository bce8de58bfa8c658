#include "engine/data/resize.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace halfwatt {
namespace {

constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// Rows of the picture as they are after the first pass, made when they are asked for, the last
/// few of them kept: as many as the tallest window needs. They stay in the innermost cache.
class RowsAcross {
 public:
  /// `first` is the picture's row that is row 0 here; `count` rows of it are to be had.
  struct From {
    const Image& image;
    const Box& box;
    std::int64_t first, count;
  };

  RowsAcross(const From& from,
             const PixelAxis& across,
             std::int64_t tallest,
             const Resampler& with)
      : from_(from),
        across_(across),
        with_(with),
        // A window may begin at the last of four rows and end at the first of four.
        kept_(rounded_up(tallest + kRowsAtOnce - 1, kRowsAtOnce)),
        stride_(rounded_up(across.places() * 3 + 1, kRowUnit)),
        wide_((across.end() - across.begin()) * 3),
        rows_(static_cast<std::size_t>(kept_ * stride_)) {}

  std::int64_t stride() const { return stride_; }

  /// The rows of `window`, and its last row once more. Windows never go back.
  const std::uint8_t* const* rows_of(const Window& window) {
    while (made_ < window.first + window.count) {
      make();
    }
    pointers_.clear();
    for (std::int64_t row = window.first; row < window.first + window.count; ++row) {
      pointers_.push_back(rows_.data() + row % kept_ * stride_);
    }
    pointers_.push_back(pointers_.back());
    return pointers_.data();
  }

 private:
  void make() {
    with_.across(across_.weights(), next_rows(),
                 {rows_.data() + made_ % kept_ * stride_, stride_});
    made_ += kRowsAtOnce;
  }

  // Where they lie; at the picture's end a copy, as nothing may be read behind it.
  Rows<const std::uint8_t> next_rows() {
    const std::int64_t picture_stride = from_.image.width * 3;
    const std::int64_t begin = (from_.box.top + from_.first + made_) * picture_stride +
                               (from_.box.left + across_.begin()) * 3;
    const std::uint8_t* next = from_.image.pixels.data() + begin;
    const std::int64_t end = begin + (kRowsAtOnce - 1) * picture_stride + wide_ + kReadBehind;
    if (end <= std::ssize(from_.image.pixels)) {
      return {next, picture_stride};
    }
    const std::int64_t wide_stride = wide_ + kReadBehind;
    wide_rows_.resize(static_cast<std::size_t>(kRowsAtOnce * wide_stride));
    const std::int64_t count = std::min(kRowsAtOnce, from_.count - made_);
    for (std::int64_t row = 0; row < count; ++row) {
      std::memcpy(wide_rows_.data() + row * wide_stride, next + row * picture_stride,
                  static_cast<std::size_t>(wide_));
    }
    return {wide_rows_.data(), wide_stride};
  }

  From from_;
  const PixelAxis& across_;
  const Resampler& with_;
  std::int64_t kept_, stride_;
  std::int64_t wide_;  ///< bytes of a row before the pass
  std::int64_t made_ = 0;
  std::vector<std::uint8_t> wide_rows_, rows_;
  std::vector<const std::uint8_t*> pointers_;
};

/// python-pillow/Pillow#9549.
bool columns_first(const Resizing& how) {
  const std::int64_t rows = how.from.height - how.height;
  const std::int64_t columns = how.from.width - how.width;
  return how.order == PassOrder::pillow13 && columns != 0 &&
         rows > std::max<std::int64_t>(0, 2 * columns);
}

/// Two resizes of one side each: a side that stays as it is keeps every bit.
Image resize_columns_first(const Image& image,
                           const Resizing& how,
                           const Box& part,
                           const Resampler& with) {
  const Image lower = resize_part(image, {how.from, how.from.width, how.height, how.filter},
                                  {0, part.top, how.from.width, part.height}, with);
  return resize_part(lower, {whole(lower), how.width, part.height, how.filter},
                     {part.left, 0, part.width, part.height}, with);
}

}  // namespace

Image resize(const Image& image,
             const Box& from,
             std::int64_t width,
             std::int64_t height,
             Filter filter) {
  return resize_part(image, {from, width, height, filter}, {0, 0, width, height});
}

Image resize_part(const Image& image,
                  const Resizing& how,
                  const Box& part,
                  const Resampler& with) {
  HALFWATT_CHECK(
      static_cast<std::int64_t>(image.pixels.size()) == image.width * image.height * 3,
      "an image has three bytes for every pixel");
  HALFWATT_CHECK(within(how.from, image.width, image.height), "the box is within the image");
  HALFWATT_CHECK(within(part, how.width, how.height), "the part is within the result");
  if (columns_first(how)) {
    return resize_columns_first(image, how, part, with);
  }
  const PixelAxis across({how.from.width, how.width, part.left, part.left + part.width},
                         how.filter);
  const PixelAxis down({how.from.height, how.height, part.top, part.top + part.height},
                       how.filter);
  RowsAcross rows({image, how.from, down.begin(), down.end() - down.begin()}, across,
                  down.widest(), with);

  Image result{part.width, part.height, {}};
  const auto bytes = static_cast<std::size_t>(part.width * 3);
  result.pixels.resize(bytes * static_cast<std::size_t>(part.height));
  std::vector<std::uint8_t> row(static_cast<std::size_t>(rows.stride()));
  for (std::int64_t place = 0; place < part.height; ++place) {
    with.down(down.weights(place), rows.rows_of(down.window(place)), row.data(), rows.stride());
    std::memcpy(result.pixels.data() + bytes * static_cast<std::size_t>(place), row.data(),
                bytes);
  }
  return result;
}

}  // namespace halfwatt
