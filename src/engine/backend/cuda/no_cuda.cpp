#include "engine/backend/cuda/cuda_backend.h"

namespace halfwatt {
namespace {

constexpr const char* kWhy =
    "this program was built without CUDA; build it where a CUDA toolkit from 12.4 on is found";

}  // namespace

Result<std::unique_ptr<Backend>> open_cuda(const CudaOptions& /*options*/) {
  return Error{ErrorKind::device, kWhy};
}

std::string why_no_cuda() { return kWhy; }

}  // namespace halfwatt
