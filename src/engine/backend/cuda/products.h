#pragma once

#include <compare>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/backend/cuda/kernels/memory.h"

namespace halfwatt::cuda {

/// c [m, n] = op(a) op(b) (+ bias), row-major and contiguous.
struct ProductShape {
  Index m = 0, n = 0, k = 0;
  bool a_transposed = false;  ///< a is [k, m]
  bool b_transposed = false;  ///< b is [n, k]
  bool has_bias = false;      ///< [n], of the result's dtype
  bool is_tf32 = false;       ///< f32 operands, rounded to tf32 as the tensor cores do
  bool sums_f16 = false;      ///< of f16 throughout: sums are f16 too; else they are fp32
  DType a = DType::f32, b = DType::f32;  ///< alike, but for fp8: then a is not transposed, b is
  DType result = DType::f32;
  auto operator<=>(const ProductShape&) const = default;
};

/// Where they lie on the device; `bias` where there is one.
struct ProductOperands {
  const std::byte* a;
  const std::byte* b;
  const std::byte* bias;
  std::byte* c;
  std::byte* workspace;            ///< kWorkspace bytes
  const float* a_scale = nullptr;  ///< of fp8: what its numbers are multiplied with
  const float* b_scale = nullptr;
};

/// How algorithms are chosen.
struct ProductChoice {
  /// Times the library's candidates and takes the fastest; else its first choice.
  bool tunes = false;
  std::string card;                                ///< what the times are of
  std::optional<std::filesystem::path> file = {};  ///< where choices are kept
};

/// Products by cuBLASLt, which is found when the program runs: the file that
/// HALFWATT_CUBLASLT names, or else the newest of the versions that this program knows, where
/// the linker or a CUDA toolkit has it.
class Products {
 public:
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;

  /// Errors (device): none is found, or it does not start.
  static Result<std::unique_ptr<Products>> open(const ProductChoice& choice);
  virtual ~Products() = default;

  /// "cuBLASLt 13.0.2".
  virtual const std::string& name() const = 0;
  /// Chooses an algorithm for products to come, which takes memory of the device for a while
  /// where it is timed; of fp8 the library's first choice is taken. Nothing may be captured
  /// meanwhile. Throws Failure.
  virtual void prepare(const ProductShape& shape) = 0;
  /// Enqueues a product; one that was not prepared takes the library's first choice. The same
  /// shape always takes the same algorithm. Throws Failure.
  virtual void run(Stream stream,
                   const ProductShape& shape,
                   const ProductOperands& operands) = 0;
};

}  // namespace halfwatt::cuda
