#pragma once

#include <memory>
#include <string_view>

#include "workloads/engine_task.h"

namespace halfwatt {

/// Extents of a product of matrices, MxK by KxN.
struct ProductShape {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
};

/// Reads "MxKxN". Errors: not three numbers of at least 1, or over 2^31 elements in a matrix.
Result<ProductShape> product_shape(std::string_view text);

/// One product of normal numbers, in the dtypes that a precision has for products.
/// `device.backend` outlives it.
std::unique_ptr<EngineTask> product_task(const ProductShape& shape, EngineDevice device);

}  // namespace halfwatt
