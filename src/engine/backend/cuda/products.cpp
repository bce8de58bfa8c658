#include "engine/backend/cuda/products.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "base/failure.h"
#include "engine/tensor/tensor.h"

namespace halfwatt::cuda {
namespace {

/// The functions of the library that are used.
struct Library {
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
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* from, Library& to) {
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
         find(from, "cublasLtMatmulAlgoGetHeuristic", to.heuristic);
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

/// Never closed: kernels of it may still be running when the program ends.
Result<Library> load() {
  std::string first_reason;
  for (const std::string& place : places()) {
    void* const handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      first_reason = first_reason.empty() ? ::dlerror() : first_reason;
      continue;
    }
    Library library{};
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

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

/// What is made once for a shape. The library knows columns first: it computes c^T [n, m] =
/// op(b)^T op(a)^T, whose first operand is b.
struct Prepared {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

class CublasLt final : public Products {
 public:
  explicit CublasLt(const Library& library) : library_(library) {
    check(library_.create(&handle_), "create");
    const std::size_t version = library_.version();
    // 13.0.2 is 130002, 12.4.5 is 120405.
    name_ =
        fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  ~CublasLt() override {
    for (const auto& [shape, prepared] : prepared_) {
      library_.destroy_description(prepared.description);
      library_.destroy_layout(prepared.first);
      library_.destroy_layout(prepared.second);
      library_.destroy_layout(prepared.result);
    }
    library_.destroy(handle_);
  }
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  const std::string& name() const override { return name_; }

  void run(Stream stream, const ProductShape& shape, const ProductOperands& operands) override {
    const auto known = prepared_.find(shape);
    const Prepared& ready =
        known != prepared_.end() ? known->second : prepared_[shape] = prepare(shape);
    if (shape.has_bias) {
      set(ready.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    }
    const float one = 1;
    const float zero = 0;
    check(
        library_.matmul(handle_, ready.description, &one, operands.b, ready.first, operands.a,
                        ready.second, &zero, operands.c, ready.result, operands.c, ready.result,
                        &ready.algorithm, operands.workspace, kWorkspace, stream),
        "matmul");
  }

 private:
  template <class T>
  void set(cublasLtMatmulDesc_t description,
           cublasLtMatmulDescAttributes_t attribute,
           const T& value) const {
    check(library_.set_description(description, attribute, &value, sizeof value),
          "set an attribute");
  }

  cublasLtMatrixLayout_t layout(DType dtype, Index rows, Index columns) const {
    cublasLtMatrixLayout_t made = nullptr;
    check(library_.create_layout(&made, type_of(dtype), static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows),
          "create a layout");
    return made;
  }

  Prepared prepare(const ProductShape& shape) const {
    Prepared ready;
    check(library_.create_description(
              &ready.description,
              shape.is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "create a description");
    set(ready.description, CUBLASLT_MATMUL_DESC_TRANSA,
        shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(ready.description, CUBLASLT_MATMUL_DESC_TRANSB,
        shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (shape.has_bias) {
      set(ready.description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(ready.description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(shape.result));
    }
    const auto [m, n, k] = std::tuple(shape.m, shape.n, shape.k);
    ready.first =
        shape.b_transposed ? layout(shape.operands, k, n) : layout(shape.operands, n, k);
    ready.second =
        shape.a_transposed ? layout(shape.operands, m, k) : layout(shape.operands, k, m);
    ready.result = layout(shape.result, n, m);
    ready.algorithm = first_choice(shape, ready);
    return ready;
  }

  cublasLtMatmulAlgo_t first_choice(const ProductShape& shape, const Prepared& ready) const {
    cublasLtMatmulPreference_t preference = nullptr;
    check(library_.create_preference(&preference), "create a preference");
    const std::size_t workspace = kWorkspace;
    check(library_.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                  &workspace, sizeof workspace),
          "set the workspace");
    // Parts of a sum, where it is split, are fp32 too.
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    check(library_.set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                  &schemes, sizeof schemes),
          "set how sums are split");
    // It takes more than a tensor has for granted, and refuses the product in the end.
    const auto alignment = static_cast<std::uint32_t>(kAlignment);
    for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      check(library_.set_preference(preference, operand, &alignment, sizeof alignment),
            "set an alignment");
    }
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        library_.heuristic(handle_, ready.description, ready.first, ready.second, ready.result,
                           ready.result, preference, 1, &found, &count);
    library_.destroy_preference(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
      throw Failure({ErrorKind::device,
                     fmt::format("cuBLASLt: no algorithm for {}x{}x{} of {} to {}: status {}",
                                 shape.m, shape.n, shape.k, text(shape.operands),
                                 text(shape.result), static_cast<int>(status))});
    }
    return found.algo;
  }

  Library library_;
  cublasLtHandle_t handle_ = nullptr;
  std::string name_;
  std::map<ProductShape, Prepared> prepared_;
};

}  // namespace

Result<std::unique_ptr<Products>> Products::open() {
  const auto library = load();
  if (!library) {
    return library.error();
  }
  try {
    return Result<std::unique_ptr<Products>>(std::make_unique<CublasLt>(*library));
  } catch (const Failure& failure) {
    return failure.error();
  }
}

}  // namespace halfwatt::cuda
