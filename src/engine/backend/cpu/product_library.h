#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/tensor/dtype.h"

namespace halfwatt::cpu {

/// A product as its library sees it: c = op(a) op(b) + bias, row-major and contiguous.
struct ProductShape {
  Index m = 0, n = 0, k = 0;
  bool a_transposed = false;  ///< a is [k, m]
  bool b_transposed = false;  ///< b is [n, k]
  bool has_bias = false;      ///< f32 [n]
  bool b_in_panels = false;   ///< b is [n, k] in the library's panels
  DType operands = DType::f32;
  DType result = DType::f32;
  auto operator<=>(const ProductShape&) const = default;
};

struct ProductOperands {
  const std::byte* a;
  const std::byte* b;
  const float* bias;
  std::byte* c;
  std::byte* workspace;
};

/// A library of matrix products; the build decides which, and may have none.
class ProductLibrary {
 public:
  virtual ~ProductLibrary() = default;
  /// Whether it computes products of that kind.
  virtual bool has(const ProductShape& shape) const = 0;
  /// How it would have weights [n, k] of a product lie, if not row by row.
  virtual std::optional<PanelShape> panels(DType dtype, Index n, Index k) const = 0;
  /// Makes ready what run() needs, and returns the bytes of workspace that it takes.
  virtual std::size_t prepare(const Workers& workers, const ProductShape& shape) = 0;
  /// Each thread computes a part of its own, so that the same bits come out of the same number
  /// of threads. Throws Failure if the library fails.
  virtual void run(Workers& workers,
                   const ProductShape& shape,
                   const ProductOperands& operands) = 0;
};

/// The library of this build; nullptr if it has none, and own kernels compute all products.
std::unique_ptr<ProductLibrary> open_product_library();

/// Its name and version for results, "oneDNN 2.6.3"; "none".
const char* product_library_name();

}  // namespace halfwatt::cpu
