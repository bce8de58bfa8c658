#include "engine/backend/cuda/device.h"

#include <fmt/format.h>

#include "base/failure.h"

namespace halfwatt::cuda {
namespace {

// After one of these no call to the device works any more in this process.
constexpr std::string_view kKernelFailed =
    "a kernel failed, by a fault of this program or of the card; \"dmesg | grep -i xid\" says "
    "which (13 and 31: a program)";
constexpr std::string_view kLost =
    "the GPU does not answer any more; \"dmesg | grep -i xid\" says why (79: it fell off the "
    "bus), and it takes a reset or a reboot";

std::string_view help(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
      return "memory of the card gave wrong bits that could not be corrected, and what was "
             "computed since is not to be trusted; \"nvidia-smi -q -d ECC,ROW_REMAPPER\" says "
             "where, a reset of the GPU may remap it";
    case cudaErrorNvlinkUncorrectable:
      return "a link between GPUs gave wrong bits; \"nvidia-smi nvlink -e\" says which";
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
      return kKernelFailed;
    case cudaErrorLaunchTimeout:
      return "a kernel took longer than the watchdog of a card with a display allows";
    case cudaErrorUnknown:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDeviceUninitialized:
      return kLost;
    case cudaErrorDevicesUnavailable:
      return "another process has the card for itself, or it waits for a reset; \"nvidia-smi\" "
             "shows both";
    case cudaErrorMemoryAllocation:
      return "memory of the card ran out; \"nvidia-smi\" shows who has it";
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return "parts of the driver are of different versions; a reboot after an update helps";
    case cudaErrorSystemNotReady:
      return "a service of the driver does not run yet (nvidia-fabricmanager, on machines with "
             "NVSwitch)";
    default:
      return "";
  }
}

}  // namespace

std::string meaning(cudaError_t error) {
  const std::string_view helps = help(error);
  return fmt::format("{} ({}){}{}", cudaGetErrorString(error), cudaGetErrorName(error),
                     helps.empty() ? "" : ": ", helps);
}

void check(cudaError_t error, std::string_view what) {
  if (error != cudaSuccess) {
    throw Failure({ErrorKind::device, fmt::format("{}: {}", what, meaning(error))});
  }
}

}  // namespace halfwatt::cuda
