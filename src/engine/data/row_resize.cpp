#include "engine/data/row_resize.h"

#include <utility>

#include "base/check.h"

namespace halfwatt {
namespace {

constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

}  // namespace

RowResize::RowResize(const ResizedPart& wanted, const Resampler& with)
    : with_(with),
      columns_({wanted.how.from.width, wanted.how.width, wanted.part.left,
                wanted.part.left + wanted.part.width},
               wanted.how.filter),
      rows_({wanted.how.from.height, wanted.how.height, wanted.part.top,
             wanted.part.top + wanted.part.height},
            wanted.how.filter),
      from_{wanted.how.from.left + columns_.begin(), wanted.how.from.top + rows_.begin(),
            columns_.end() - columns_.begin(), rows_.end() - rows_.begin()},
      // A window may begin at the last of the rows taken at once and end at the first of them.
      kept_(rounded_up(rows_.widest() + kRowsAtOnce - 1, kRowsAtOnce)),
      stride_(rounded_up(columns_.places() * 3 + 1, kRowUnit)),
      across_(static_cast<std::size_t>(kept_ * stride_)),
      bytes_(columns_.places() * 3),
      result_{wanted.part.width, wanted.part.height, {}} {
  // The second pass writes more than a row has: what comes behind it is the next row's.
  result_.pixels.resize(static_cast<std::size_t>(bytes_ * (rows_.places() - 1) + stride_));
}

void RowResize::take(const Rows<const std::uint8_t>& rows, std::int64_t count) {
  for (std::int64_t row = 0; row < count; row += kRowsAtOnce) {
    with_.across(columns_.weights(), {rows.first + row * rows.stride, rows.stride},
                 {across_row(taken_), stride_});
    taken_ += kRowsAtOnce;
    make_rows_below();
  }
}

/// Of the result, as far as it is made of what was taken.
void RowResize::make_rows_below() {
  for (; place_ < rows_.places(); ++place_) {
    const Window& window = rows_.window(place_);
    if (window.first + window.count > taken_) {
      return;
    }
    window_.clear();
    for (std::int64_t row = window.first; row < window.first + window.count; ++row) {
      window_.push_back(across_row(row));
    }
    window_.push_back(window_.back());
    with_.down(rows_.weights(place_), window_.data(), result_.pixels.data() + bytes_ * place_,
               stride_);
  }
}

Image RowResize::result() {
  HALFWATT_CHECK(place_ == rows_.places(), "a resize has taken all its rows");
  result_.pixels.resize(static_cast<std::size_t>(bytes_ * rows_.places()));
  return std::move(result_);
}

}  // namespace halfwatt
