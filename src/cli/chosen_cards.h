#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/devices.h"
#include "device/visible_devices.h"
#include "measure/spawn.h"

namespace halfwatt {

/// The cards that a user's command uses.
struct ChosenCards {
  std::vector<DeviceId> ids;
  /// For the command, so that it uses these cards and no others.
  Environment environment;
  std::vector<std::string> remarks;  ///< for the user
};

/// The cards that `asked` (`--device LIST`) names; without it those that CUDA_VISIBLE_DEVICES
/// shows, or the one card there is. Where cards were named and CUDA_VISIBLE_DEVICES is not set
/// the command gets it, since a job that runs on another card than the one that is measured is
/// worth nothing. Errors: no card, several and none named, or a variable that hides what was
/// named or leaves in doubt which cards it shows.
Result<ChosenCards> choose_cards(const DeviceList& list,
                                 const std::optional<std::string>& asked,
                                 const CudaEnvironment& cuda);

}  // namespace halfwatt
