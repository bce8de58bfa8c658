#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace halfwatt {

/// Extents of a tensor, outermost first; none at all is a scalar.
class Shape {
 public:
  static constexpr std::size_t kMostExtents = 6;

  Shape() = default;
  /// At most six extents, none negative; anything else is a broken invariant.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t at) const { return extents_[at]; }
  /// From the end: `last(0)` is the innermost extent. 1 where there is none.
  std::int64_t last(std::size_t at) const { return at < rank_ ? extents_[rank_ - 1 - at] : 1; }
  std::span<const std::int64_t> extents() const { return {extents_.data(), rank_}; }
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + rank_; }

  /// How many elements; 1 of a scalar.
  std::int64_t elements() const;
  /// Elements of the extents before the innermost one: rows of a matrix.
  std::int64_t rows() const { return last(0) == 0 ? 0 : elements() / last(0); }

  /// The same extents with the one at `at` replaced.
  Shape with(std::size_t at, std::int64_t extent) const;

  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMostExtents> extents_{};
  std::size_t rank_ = 0;
};

/// "128x768", "scalar".
std::string text(const Shape& shape);

/// What `one` and `other` spread to, aligned at the innermost extent, an extent of 1 against
/// any other (numpy's rule); nullopt if they do not fit.
std::optional<Shape> broadcast(const Shape& one, const Shape& other);

}  // namespace halfwatt
