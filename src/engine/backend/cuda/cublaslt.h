#pragma once

#include <cublasLt.h>

#include <vector>

#include "base/result.h"
#include "engine/backend/cuda/products.h"

namespace halfwatt::cuda {

/// The functions of the library that are used.
struct CublasLtLibrary {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) create_description;
  decltype(&cublasLtMatmulDescDestroy) destroy_description;
  decltype(&cublasLtMatmulDescSetAttribute) set_description;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulAlgoCheck) check_algorithm;
};

/// The file that HALFWATT_CUBLASLT names, or else the newest of the versions that this program
/// knows, where the linker or a CUDA toolkit has it. Errors (device): none is found.
Result<CublasLtLibrary> load_cublaslt();

/// Throws Failure unless `status` is that of success.
void check(cublasStatus_t status, const char* what);

/// A product as the library knows it. It knows columns first: it computes c^T [n, m] =
/// op(b)^T op(a)^T, whose first operand is b. Throws Failure where it cannot be described.
class Description {
 public:
  Description(const CublasLtLibrary& library, const ProductShape& shape);
  ~Description();
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  /// Up to `most` algorithms, those first that the library takes for the fastest.
  std::vector<cublasLtMatmulAlgo_t> algorithms(cublasLtHandle_t handle, int most) const;
  /// Whether that algorithm, which may be another library's, computes this in the workspace.
  bool is_served_by(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const;
  void enqueue(cublasLtHandle_t handle,
               const cublasLtMatmulAlgo_t& algorithm,
               const ProductOperands& operands,
               Stream stream) const;

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const;
  cublasLtMatrixLayout_t layout(DType dtype, Index rows, Index columns) const;
  void destroy() const;

  CublasLtLibrary library_;
  bool has_bias_;
  bool sums_f16_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
};

}  // namespace halfwatt::cuda
