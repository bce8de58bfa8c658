#pragma once

#include <memory>
#include <string>

#include "engine/backend/backend.h"

namespace halfwatt {

struct CudaOptions {
  int device = 0;  ///< as NVML and `gpu:0` number them: by their place on the bus
};

/// One NVIDIA GPU as a device. Errors (device): this program was built without CUDA; there is
/// no driver, or one that is too old; there is no such GPU, or one that this program has no
/// code for; no cuBLASLt is found.
Result<std::unique_ptr<Backend>> open_cuda(const CudaOptions& options = {});

/// Why open_cuda() would not give a GPU here; empty if it would. For those who can do without.
std::string why_no_cuda();

}  // namespace halfwatt
