#pragma once

#include <optional>

#include "base/units.h"
#include "device/energy_method.h"

namespace halfwatt {

/// Energy of one window; absent where nothing measured it.
struct Energy {
  std::optional<Joules> value;
  EnergyMethod method = EnergyMethod::none;
  std::optional<double> relative_error;  ///< of the absolute value; one card's windows share it
};

}  // namespace halfwatt
