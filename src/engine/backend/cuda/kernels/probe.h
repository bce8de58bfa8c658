#pragma once

#include <driver_types.h>

namespace halfwatt::cuda {

/// What comes of looking for this program's code for a device: cudaErrorNoKernelImageForDevice
/// where there is none.
cudaError_t run_nothing(int device);

}  // namespace halfwatt::cuda
