#include "engine/backend/cuda/cublaslt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "base/failure.h"
#include "engine/tensor/tensor.h"

namespace halfwatt::cuda {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* from, CublasLtLibrary& to) {
  return find(from, "cublasLtCreate", to.create) && find(from, "cublasLtDestroy", to.destroy) &&
         find(from, "cublasLtGetVersion", to.version) &&
         find(from, "cublasLtMatmul", to.matmul) &&
         find(from, "cublasLtMatmulDescCreate", to.create_description) &&
         find(from, "cublasLtMatmulDescDestroy", to.destroy_description) &&
         find(from, "cublasLtMatmulDescSetAttribute", to.set_description) &&
         find(from, "cublasLtMatrixLayoutCreate", to.create_layout) &&
         find(from, "cublasLtMatrixLayoutDestroy", to.destroy_layout) &&
         find(from, "cublasLtMatmulPreferenceCreate", to.create_preference) &&
         find(from, "cublasLtMatmulPreferenceDestroy", to.destroy_preference) &&
         find(from, "cublasLtMatmulPreferenceSetAttribute", to.set_preference) &&
         find(from, "cublasLtMatmulAlgoGetHeuristic", to.heuristic) &&
         find(from, "cublasLtMatmulAlgoCheck", to.check_algorithm);
}

std::vector<std::string> places() {
  if (const char* const named = std::getenv("HALFWATT_CUBLASLT")) {
    return {named};
  }
  std::vector<std::string> folders = {""};
  if (const char* const home = std::getenv("CUDA_HOME")) {
    folders.push_back(fmt::format("{}/lib64/", home));
  }
  folders.emplace_back("/usr/local/cuda/lib64/");
  std::vector<std::string> all;
  for (const char* const version : {"13", "12"}) {
    for (const std::string& folder : folders) {
      all.push_back(fmt::format("{}libcublasLt.so.{}", folder, version));
    }
  }
  return all;
}

}  // namespace

// Never closed: kernels of it may still be running when the program ends.
Result<CublasLtLibrary> load_cublaslt() {
  std::string first_reason;
  for (const std::string& place : places()) {
    void* const handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      first_reason = first_reason.empty() ? ::dlerror() : first_reason;
      continue;
    }
    CublasLtLibrary library{};
    if (find_all(handle, library)) {
      return library;
    }
    first_reason = fmt::format("{}: lacks a function of cuBLASLt", place);
  }
  return Error{ErrorKind::device,
               fmt::format("cuBLASLt is needed and was not found ({}); HALFWATT_CUBLASLT=FILE "
                           "names it",
                           first_reason)};
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw Failure({ErrorKind::device,
                   fmt::format("cuBLASLt: {}: status {}", what, static_cast<int>(status))});
  }
}

namespace {

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace

Description::Description(const CublasLtLibrary& library, const ProductShape& shape)
    : library_(library), has_bias_(shape.has_bias), sums_f16_(shape.sums_f16) {
  try {
    const auto compute = shape.is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                         : sums_f16_   ? CUBLAS_COMPUTE_16F
                                       : CUBLAS_COMPUTE_32F;
    check(library_.create_description(&description_, compute,
                                      sums_f16_ ? CUDA_R_16F : CUDA_R_32F),
          "create a description");
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (has_bias_) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(shape.result));
    }
    if (bytes_of(shape.a) == 1) {
      // Which algorithms serve follows from there being scales; where they are is said later.
      const auto* const somewhere = reinterpret_cast<const float*>(kAlignment);
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, somewhere);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, somewhere);
    }
    // Forward; gradients, one side of which is e5m2, add up in full fp32.
    if (shape.a == DType::e4m3 && shape.b == DType::e4m3) {
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
    }
    const auto [m, n, k] = std::tuple(shape.m, shape.n, shape.k);
    first_ = shape.b_transposed ? layout(shape.b, k, n) : layout(shape.b, n, k);
    second_ = shape.a_transposed ? layout(shape.a, m, k) : layout(shape.a, k, m);
    result_ = layout(shape.result, n, m);
  } catch (...) {
    destroy();
    throw;
  }
}

Description::~Description() { destroy(); }

void Description::destroy() const {
  if (description_ != nullptr) {
    library_.destroy_description(description_);
  }
  for (const cublasLtMatrixLayout_t each : {first_, second_, result_}) {
    if (each != nullptr) {
      library_.destroy_layout(each);
    }
  }
}

template <class T>
void Description::set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
  check(library_.set_description(description_, attribute, &value, sizeof value),
        "set an attribute");
}

cublasLtMatrixLayout_t Description::layout(DType dtype, Index rows, Index columns) const {
  cublasLtMatrixLayout_t made = nullptr;
  check(library_.create_layout(&made, type_of(dtype), static_cast<std::uint64_t>(rows),
                               static_cast<std::uint64_t>(columns), rows),
        "create a layout");
  return made;
}

std::vector<cublasLtMatmulAlgo_t> Description::algorithms(cublasLtHandle_t handle,
                                                          int most) const {
  cublasLtMatmulPreference_t preference = nullptr;
  check(library_.create_preference(&preference), "create a preference");
  const auto set_preference = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                                  const auto& value) {
    return library_.set_preference(preference, attribute, &value, sizeof value);
  };
  std::vector<cublasStatus_t> done = {set_preference(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     std::size_t{Products::kWorkspace})};
  // Parts of a sum, where it is split, are what its sums are.
  done.push_back(
      set_preference(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                     static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  // It takes more than a tensor has for granted, and refuses the product in the end.
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    done.push_back(set_preference(operand, static_cast<std::uint32_t>(kAlignment)));
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
  int count = 0;
  cublasStatus_t status = library_.heuristic(handle, description_, first_, second_, result_,
                                             result_, preference, most, found.data(), &count);
  library_.destroy_preference(preference);
  for (const cublasStatus_t each : done) {
    check(each, "set a preference");
  }
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    return {};
  }
  check(status, "ask for algorithms");
  std::vector<cublasLtMatmulAlgo_t> all;
  for (int at = 0; at < count; ++at) {
    if (found[static_cast<std::size_t>(at)].state == CUBLAS_STATUS_SUCCESS) {
      all.push_back(found[static_cast<std::size_t>(at)].algo);
    }
  }
  return all;
}

bool Description::is_served_by(cublasLtHandle_t handle,
                               const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t found{};
  return library_.check_algorithm(handle, description_, first_, second_, result_, result_,
                                  &algorithm, &found) == CUBLAS_STATUS_SUCCESS &&
         found.workspaceSize <= Products::kWorkspace;
}

void Description::enqueue(cublasLtHandle_t handle,
                          const cublasLtMatmulAlgo_t& algorithm,
                          const ProductOperands& operands,
                          Stream stream) const {
  if (has_bias_) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  if (operands.a_scale != nullptr) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.b_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.a_scale);
  }
  // What a product is multiplied with is of the dtype of its sums.
  const float one = 1;
  const std::uint16_t one_f16 = 0x3C00;
  const float zero = 0;  // of either dtype
  const void* const factor = sums_f16_ ? static_cast<const void*>(&one_f16) : &one;
  check(library_.matmul(handle, description_, factor, operands.b, first_, operands.a, second_,
                        &zero, operands.c, result_, operands.c, result_, &algorithm,
                        operands.workspace, Products::kWorkspace, stream),
        "matmul");
}

}  // namespace halfwatt::cuda
