#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "device/devices.h"

namespace halfwatt {

/// The flag --device LIST, as every command takes it that only looks.
Option device_option();

/// A device that a command looks at, open, with the name it has at present.
struct OpenDevice {
  std::string called;  ///< "gpu:0", "cpu"
  FoundDevice found;
  std::unique_ptr<Device> device;  ///< nullptr where `error` says why
  std::optional<Error> error;
};

/// Opens what --device names, or all there is. Errors: none is here, or one that was named is
/// not.
Result<std::vector<OpenDevice>> open_devices(const DeviceList& list,
                                             const Invocation& invocation,
                                             const Clock& clock);

/// `halfwatt devices`: what is here and what its limits are.
Command devices_command();

}  // namespace halfwatt
