#pragma once

#include <memory>

#include "base/clock.h"
#include "cli/command.h"
#include "device/device.h"
#include "engine/backend/backend.h"

namespace halfwatt {

/// Where a command of the engine computes: `--device cpu` (the default) or `--device gpu:N`.
/// Errors: any other device.
Result<DeviceId> compute_device_asked(const Invocation& invocation);

/// The flag, for tables of options.
Option compute_device_option();

/// `--deterministic`, for commands that compute on a card.
Option deterministic_option();

/// That device as a backend; `threads` are the processor's, 0: as many as there are. Which
/// algorithms are the fastest for a card's products is measured once and kept in the user's
/// cache, unless the run is to be `deterministic`. Errors: as open_cpu() and open_cuda().
Result<std::unique_ptr<Backend>> open_backend(const DeviceId& id,
                                              int threads,
                                              bool deterministic);

/// The meter of that device: of the processor RAPL's, of a card NVML's. Errors: there is none,
/// or nobody may read it.
Result<std::unique_ptr<Device>> open_meter(const DeviceId& id, const Clock& clock);

}  // namespace halfwatt
