#include <cuda_runtime.h>

#include "engine/backend/cuda/kernels/probe.h"

namespace halfwatt::cuda {
namespace {

__global__ void nothing() {}

}  // namespace

bool has_code_for_this_device(int device) {
  cudaFuncAttributes attributes{};
  const bool has = cudaSetDevice(device) == cudaSuccess &&
                   cudaFuncGetAttributes(&attributes, nothing) == cudaSuccess;
  cudaGetLastError();
  return has;
}

}  // namespace halfwatt::cuda
