#include "engine/tensor/summary.h"

#include <algorithm>
#include <cmath>

namespace halfwatt {
namespace {

/// The power of two that brings `largest` near 1, so that no square or sum of any finite
/// doubles overflows or vanishes; a power of two changes no digit.
double scale_for(double largest) {
  constexpr int kMost = 1000;  // so that the scale is itself a normal double
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, -std::clamp(exponent, -kMost, kMost));
}

template <class T>
ValueSummary summary_of(std::span<T> elements) {
  ValueSummary all;
  ValueSummary::Finite finite{HUGE_VAL, -HUGE_VAL};
  for (const T element : elements) {
    const auto value = static_cast<double>(element);
    if (std::isfinite(value)) {
      finite.min = std::min(finite.min, value);
      finite.max = std::max(finite.max, value);
    } else {
      ++all.not_finite;
    }
  }
  const auto count = static_cast<double>(elements.size()) - static_cast<double>(all.not_finite);
  if (count == 0) {
    return all;
  }
  const double scale = scale_for(std::max(std::abs(finite.min), std::abs(finite.max)));
  double sum = 0;
  double squares = 0;
  for (const T element : elements) {
    const double value = static_cast<double>(element) * scale;
    if (std::isfinite(value)) {
      sum += value;
      squares += value * value;
    }
  }
  finite.mean = sum / count / scale;
  finite.rms = std::sqrt(squares / count) / scale;
  all.finite = finite;
  return all;
}

}  // namespace

std::optional<ValueSummary> summary(const TensorView& tensor) {
  switch (tensor.type.dtype) {
    case DType::f64:
      return summary_of(tensor.as<const double>());
    case DType::f32:
    case DType::tf32:
      return summary_of(tensor.as<const float>());
    case DType::i64:
      return summary_of(tensor.as<const std::int64_t>());
    case DType::i32:
      return summary_of(tensor.as<const std::int32_t>());
    case DType::i16:
      return summary_of(tensor.as<const std::int16_t>());
    case DType::i8:
      return summary_of(tensor.as<const std::int8_t>());
    case DType::u64:
      return summary_of(tensor.as<const std::uint64_t>());
    case DType::u32:
      return summary_of(tensor.as<const std::uint32_t>());
    case DType::u16:
      return summary_of(tensor.as<const std::uint16_t>());
    case DType::u8:
    case DType::boolean:
      return summary_of(tensor.as<const std::uint8_t>());
    case DType::f16:
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace halfwatt
