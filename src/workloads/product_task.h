#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/engine_task.h"
#include "workloads/model_choice.h"

namespace halfwatt {

/// A product of matrices, MxK by KxN.
struct ProductShape {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
  bool transpose_a = false;  ///< the first lies as KxM
  bool transpose_b = true;   ///< the second lies as NxK, as weights do
  bool operator==(const ProductShape&) const = default;
};

/// "3152x192x576 NT": extents, and whether each matrix lies transposed (T) or not (N).
std::string text(const ProductShape& shape);

/// Reads "MxKxN". Errors: not three numbers of at least 1, or over 2^31 elements in a matrix.
Result<ProductShape> product_shape(std::string_view text);

/// The products of a training step of a model, or of its forward pass alone, each kind once, in
/// the order in which they come. Errors: as training_plans().
Result<std::vector<ProductShape>> products_of(const ModelChoice& choice,
                                              bool trains,
                                              std::int64_t batch,
                                              const Target& target);

/// The knob that says which of several products is meant, by its text.
Knob shape_knob();

/// One product of normal numbers, in the dtypes that a precision has for products.
/// `device.backend` outlives it.
std::unique_ptr<EngineTask> product_task(const ProductShape& shape, EngineDevice device);
/// One of several, by shape_knob(); `name` is that of them all.
std::unique_ptr<EngineTask> product_task(std::vector<ProductShape> shapes,
                                         std::string name,
                                         EngineDevice device);

}  // namespace halfwatt
