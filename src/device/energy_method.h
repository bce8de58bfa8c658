#pragma once

#include <optional>
#include <string_view>

namespace halfwatt {

/// Where a figure in joules comes from, best first.
enum class EnergyMethod {
  counter,         ///< difference of the card's energy counter between two of its ticks
  power_integral,  ///< integral of sampled power
  average_power,   ///< a power somebody averaged, times time
  none,
};

constexpr std::string_view text(EnergyMethod method) {
  switch (method) {
    case EnergyMethod::counter:
      return "counter";
    case EnergyMethod::power_integral:
      return "power-integral";
    case EnergyMethod::average_power:
      return "average-power";
    case EnergyMethod::none:
      break;
  }
  return "none";
}

constexpr std::optional<EnergyMethod> energy_method(std::string_view word) {
  for (const auto method : {EnergyMethod::counter, EnergyMethod::power_integral,
                            EnergyMethod::average_power, EnergyMethod::none}) {
    if (word == text(method)) {
      return method;
    }
  }
  return std::nullopt;
}

}  // namespace halfwatt
