#include "engine/tensor/convert.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/check.h"

namespace halfwatt {
namespace {

/// A dtype that a template can be given as an argument.
template <DType D>
using Constant = std::integral_constant<DType, D>;

/// Calls `action` with the Constant of a float dtype.
template <class Action>
void with_float(DType dtype, Action action) {
  switch (dtype) {
    case DType::f64:
      return action(Constant<DType::f64>());
    case DType::f32:
      return action(Constant<DType::f32>());
    case DType::tf32:
      return action(Constant<DType::tf32>());
    case DType::f16:
      return action(Constant<DType::f16>());
    case DType::bf16:
      return action(Constant<DType::bf16>());
    case DType::e4m3:
      return action(Constant<DType::e4m3>());
    case DType::e5m2:
      return action(Constant<DType::e5m2>());
    default:
      HALFWATT_CHECK(false, "a float dtype is needed here");
  }
}

/// Elements that stay in the nearest cache between being read and being written.
constexpr std::size_t kBlock = 1024;

/// Whether float holds every number of `dtype`; double is needed otherwise.
bool fits_float(DType dtype) {
  return is_float(dtype) ? dtype != DType::f64 : bytes_of(dtype) <= 2;
}

template <class Integer, class Float>
void read_integers(const std::byte* from, std::span<Float> to) {
  const auto* integers = reinterpret_cast<const Integer*>(from);
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<Float>(integers[i]);
  }
}

template <class Float>
void read_integers(DType dtype, const std::byte* from, std::span<Float> to) {
  switch (dtype) {
    case DType::i64:
      return read_integers<std::int64_t>(from, to);
    case DType::i32:
      return read_integers<std::int32_t>(from, to);
    case DType::i16:
      return read_integers<std::int16_t>(from, to);
    case DType::i8:
      return read_integers<std::int8_t>(from, to);
    case DType::u64:
      return read_integers<std::uint64_t>(from, to);
    case DType::u32:
      return read_integers<std::uint32_t>(from, to);
    case DType::u16:
      return read_integers<std::uint16_t>(from, to);
    case DType::u8:
      return read_integers<std::uint8_t>(from, to);
    default:  // any byte but 0 is true
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = from[i] == std::byte{0} ? Float{0} : Float{1};
      }
  }
}

template <class Float>
void read(DType dtype, const std::byte* from, std::span<Float> to) {
  if (!is_float(dtype)) {
    return read_integers(dtype, from, to);
  }
  with_float(dtype, [&]<DType D>(Constant<D> /*dtype*/) {
    if constexpr (D != DType::f64 || std::is_same_v<Float, double>) {
      const auto* stored = reinterpret_cast<const Stored<D>*>(from);
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = decode<D>(stored[i]);
      }
    }
  });
}

template <class Float>
void write(DType dtype, std::span<const Float> from, std::byte* to, Overflow overflow) {
  with_float(dtype, [&]<DType D>(Constant<D> /*dtype*/) {
    auto* stored = reinterpret_cast<Stored<D>*>(to);
    for (std::size_t i = 0; i < from.size(); ++i) {
      stored[i] = encode<D>(from[i], overflow);
    }
  });
}

template <class Float>
void convert_through(const TensorView& from, const TensorView& to, Overflow overflow) {
  std::array<Float, kBlock> block;
  const auto elements = static_cast<std::size_t>(from.type.shape.elements());
  for (std::size_t at = 0; at < elements; at += kBlock) {
    const auto numbers = std::span(block).first(std::min(kBlock, elements - at));
    read<Float>(from.type.dtype, from.data + at * bytes_of(from.type.dtype), numbers);
    write<Float>(to.type.dtype, numbers, to.data + at * bytes_of(to.type.dtype), overflow);
  }
}

}  // namespace

float rounded(DType through, float value, Overflow overflow) {
  float result = value;
  with_float(through,
             [&]<DType D>(Constant<D> /*dtype*/) { result = rounded<D>(value, overflow); });
  return result;
}

bool can_convert(DType from, DType to) { return from == to || is_float(to); }

void convert(const TensorView& from, const TensorView& to, Overflow overflow) {
  HALFWATT_CHECK(from.type.shape == to.type.shape, "a conversion between different shapes");
  HALFWATT_CHECK(can_convert(from.type.dtype, to.type.dtype),
                 "a conversion to integers, which needs a scale");
  if (from.type == to.type) {
    std::memcpy(to.data, from.data, from.type.bytes());
  } else if (fits_float(from.type.dtype)) {
    convert_through<float>(from, to, overflow);
  } else {
    convert_through<double>(from, to, overflow);
  }
}

void quantize(std::span<const float> from, float scale, std::span<std::int8_t> to) {
  HALFWATT_CHECK(from.size() == to.size(), "as many integers as numbers to quantize");
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = quantized(from[i], scale);
  }
}

void rows_into(const TensorView& from, std::int64_t first, const TensorView& to) {
  const std::int64_t rows = to.type.shape[0];
  const std::int64_t all = from.type.shape[0];
  HALFWATT_CHECK(all > 0 && from.type.shape.elements() / all * rows == to.type.shape.elements(),
                 "rows of as many elements");
  const Shape row = to.type.shape.with(0, 1);
  const std::size_t from_bytes = TensorType{from.type.dtype, row}.bytes();
  const std::size_t to_bytes = TensorType{to.type.dtype, row}.bytes();
  const auto rows_of = [&](std::int64_t place, std::int64_t at, std::int64_t count) {
    const Shape shape = to.type.shape.with(0, count);
    convert(
        {{from.type.dtype, shape}, from.data + static_cast<std::size_t>(place) * from_bytes},
        {{to.type.dtype, shape}, to.data + static_cast<std::size_t>(at) * to_bytes});
  };
  const std::int64_t there = std::clamp<std::int64_t>(all - first, 0, rows);
  rows_of(first, 0, there);
  for (std::int64_t row_at = there; row_at < rows; ++row_at) {
    rows_of(all - 1, row_at, 1);
  }
}

Tensor rows_as(const TensorView& from, std::int64_t first, const TensorType& type) {
  Tensor rows(type);
  rows_into(from, first, rows.view());
  return rows;
}

}  // namespace halfwatt
