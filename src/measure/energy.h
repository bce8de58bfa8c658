#pragma once

#include <cmath>
#include <optional>

#include "base/units.h"
#include "device/energy_method.h"

namespace halfwatt {

/// Energy of one window; absent where nothing measured it. Its two errors stand apart: what the
/// card's sensor is off is one factor for all its windows, and drops out where they are
/// compared; what the edges of a window are off does not.
struct Energy {
  std::optional<Joules> value;
  EnergyMethod method = EnergyMethod::none;
  std::optional<double> relative_error;  ///< of the absolute value; one card's windows share it
  std::optional<double> window_error = {};  ///< relative, of this window alone

  /// Both together, of the absolute value; nullopt where the sensor's is not known.
  std::optional<double> total_error() const {
    return relative_error ? std::optional(std::hypot(*relative_error, window_error.value_or(0)))
                          : std::nullopt;
  }
};

}  // namespace halfwatt
