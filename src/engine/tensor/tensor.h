#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace halfwatt {

/// Dtype and shape: what an edge of a graph, a state and a tensor have in common.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  std::size_t bytes() const {
    return static_cast<std::size_t>(shape.elements()) * bytes_of(dtype);
  }
  bool operator==(const TensorType&) const = default;
};

/// "f32 128x768".
std::string text(const TensorType& type);

/// Where every tensor's first byte lies: a cache line, and the widest vector register.
inline constexpr std::size_t kAlignment = 64;

/// Whether `T` may be used to look at elements of `dtype`: float for f32 and tf32, double for
/// f64, and an unsigned or signed integer of the same width for everything else.
template <class T>
bool may_view(DType dtype) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, double>) {
    return dtype == DType::f64;
  } else if constexpr (std::is_same_v<Plain, float>) {
    return dtype == DType::f32 || dtype == DType::tf32;
  } else {
    return std::is_integral_v<Plain> && sizeof(Plain) == bytes_of(dtype) &&
           dtype != DType::f64 && dtype != DType::f32 && dtype != DType::tf32;
  }
}

/// Contiguous elements that somebody else owns, innermost extent fastest.
struct TensorView {
  TensorType type;
  std::byte* data = nullptr;

  /// The elements; `T` must fit the dtype (may_view).
  template <class T>
  std::span<T> as() const {
    HALFWATT_CHECK(may_view<T>(type.dtype), "a tensor looked at as another type");
    return {reinterpret_cast<T*>(data), static_cast<std::size_t>(type.shape.elements())};
  }
  std::span<std::byte> bytes() const { return {data, type.bytes()}; }
};

/// A tensor in host memory that owns its elements.
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised elements. Throws std::bad_alloc.
  explicit Tensor(TensorType type);
  /// The elements of `values`, which must be as many as `shape` has and fit `dtype`.
  template <class T>
  static Tensor of(DType dtype, Shape shape, std::span<const T> values);

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  TensorView view() const { return {type_, data_.get()}; }
  template <class T>
  std::span<T> as() {
    return view().as<T>();
  }
  template <class T>
  std::span<const T> as() const {
    return view().as<T>();
  }
  Tensor copy() const;

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  TensorType type_{DType::f32, Shape{0}};
  std::unique_ptr<std::byte[], Free> data_;
};

template <class T>
Tensor Tensor::of(DType dtype, Shape shape, std::span<const T> values) {
  Tensor tensor(TensorType{dtype, shape});
  const std::span<T> elements = tensor.as<T>();
  HALFWATT_CHECK(elements.size() == values.size(), "as many values as the shape has elements");
  std::copy(values.begin(), values.end(), elements.begin());
  return tensor;
}

}  // namespace halfwatt
