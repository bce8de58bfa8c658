#include "engine/tensor/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace halfwatt {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
  HALFWATT_CHECK(rank_ <= kMostExtents, "a shape of more than six extents");
  HALFWATT_CHECK(std::all_of(extents.begin(), extents.end(), [](auto e) { return e >= 0; }),
                 "a negative extent");
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : *this) {
    product *= extent;
  }
  return product;
}

Shape Shape::with(std::size_t at, std::int64_t extent) const {
  HALFWATT_CHECK(at < rank_, "an extent that the shape does not have");
  Shape changed = *this;
  changed.extents_[at] = extent;
  return changed;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string text(const Shape& shape) {
  return shape.rank() == 0 ? "scalar" : fmt::format("{}", fmt::join(shape.extents(), "x"));
}

std::optional<Shape> broadcast(const Shape& one, const Shape& other) {
  const std::size_t rank = std::max(one.rank(), other.rank());
  std::array<std::int64_t, Shape::kMostExtents> extents{};
  for (std::size_t at = 0; at < rank; ++at) {
    const std::int64_t a = one.last(at);
    const std::int64_t b = other.last(at);
    if (a != b && a != 1 && b != 1) {
      return std::nullopt;
    }
    extents[rank - 1 - at] = a == 1 ? b : a;
  }
  return Shape(std::span<const std::int64_t>(extents.data(), rank));
}

}  // namespace halfwatt
