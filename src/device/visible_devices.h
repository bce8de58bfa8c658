#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/nvml_library.h"

namespace halfwatt {

/// The variables by which CUDA decides which cards a program sees; nullopt: not set.
struct CudaEnvironment {
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES
  std::optional<std::string> device_order;     ///< CUDA_DEVICE_ORDER
};

/// Those of this process.
CudaEnvironment cuda_environment();

/// One device as CUDA numbers them: device 0 is the first.
struct VisibleDevice {
  std::string uuid;   ///< of the card
  std::string slice;  ///< UUID of a MIG slice on it; empty: the whole card
};

struct VisibleDevices {
  std::vector<VisibleDevice> devices;
  /// Why an index may mean another card than the one above, and what would make it certain.
  std::optional<std::string> doubt;
};

/// Which of `cards` CUDA shows under `environment`, in its order. Like CUDA it reads indices,
/// UUIDs and unique beginnings of them, and MIG ids, and ignores all from an index that is out
/// of range on. CUDA's indices are not NVML's: unless CUDA_DEVICE_ORDER is PCI_BUS_ID the
/// fastest card comes first, and which that is only CUDA knows. Errors: an id that names no
/// card here, or several, or one twice.
Result<VisibleDevices> visible_devices(const std::vector<NvmlEntry>& cards,
                                       const CudaEnvironment& environment);

}  // namespace halfwatt
