#pragma once

#include <optional>

#include "base/units.h"

namespace halfwatt {

/// Gives memory that was freed back to the system, so that it does not count as held.
void give_back_free_memory();

/// Does that, and begins to count this process's peak anew; false
/// where the system does not allow that.
bool restart_resident_peak();

/// The most memory of the host that this process has held since then, code included; nullopt
/// where the system does not tell.
std::optional<Bytes> resident_peak();

}  // namespace halfwatt
