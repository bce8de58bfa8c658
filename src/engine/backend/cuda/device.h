#pragma once

#include <cuda_runtime.h>

#include <string>

#include "base/failure.h"

namespace halfwatt::cuda {

/// Throws Failure (device), "what: the runtime's words", unless all went well.
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw Failure({ErrorKind::device, std::string(what) + ": " + cudaGetErrorString(error)});
  }
}

}  // namespace halfwatt::cuda
