#include "engine/tensor/narrow.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace halfwatt {
namespace {

// A part of a tensor's elements, as if it were one.
TensorView part(const TensorView& whole, std::int64_t first, std::int64_t count) {
  const TensorType type{whole.type.dtype, Shape{count}};
  return {type, whole.data + TensorType{type.dtype, Shape{first}}.bytes()};
}

}  // namespace

void Narrowing::add(const Narrowing& other) {
  elements += other.elements;
  not_finite += other.not_finite;
  overflowed += other.overflowed;
  underflowed += other.underflowed;
  subnormal += other.subnormal;
  largest = std::max(largest, other.largest);
}

Narrowing narrow(const TensorView& from, const TensorView& to, Overflow overflow) {
  HALFWATT_CHECK(is_float(from.type.dtype) && is_float(to.type.dtype), "numbers to round");
  convert(from, to);
  const DTypeFacts& format = facts(to.type.dtype);
  Narrowing all;
  all.elements = from.type.shape.elements();
  // Both as doubles, which hold every number of every format, a piece at a time.
  constexpr std::int64_t kPiece = 4096;
  for (std::int64_t first = 0; first < all.elements; first += kPiece) {
    const std::int64_t count = std::min(kPiece, all.elements - first);
    Tensor before(TensorType{DType::f64, Shape{count}});
    Tensor after(TensorType{DType::f64, Shape{count}});
    convert(part(from, first, count), before.view());
    convert(part(to, first, count), after.view());
    for (std::size_t at = 0; at < static_cast<std::size_t>(count); ++at) {
      const double was = std::abs(before.as<double>()[at]);
      const double is = std::abs(after.as<double>()[at]);
      if (!std::isfinite(was)) {
        ++all.not_finite;
        continue;
      }
      all.largest = std::max(all.largest, was);
      all.overflowed += std::isfinite(is) ? 0 : 1;
      all.underflowed += was > 0 && is == 0 ? 1 : 0;
      all.subnormal += is > 0 && is < format.min_normal ? 1 : 0;
    }
  }
  if (overflow == Overflow::saturate) {
    convert(from, to, overflow);
  }
  return all;
}

}  // namespace halfwatt
