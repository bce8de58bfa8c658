#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace halfwatt {

/// What a device tells about itself; a new one is a row here and the line that reads it.
/// docs/devices.md says where each comes from.
enum class SignalId : std::size_t {
  power,
  average_power,
  energy,
  requested_limit,
  enforced_limit,
  default_limit,
  min_limit,
  max_limit,
  sm_clock,
  memory_clock,
  graphics_clock,
  temperature,
  memory_temperature,
  temperature_margin,
  fan,
  gpu_utilisation,
  memory_utilisation,
  memory_used,
  memory_total,
  event_reasons,
  power_capped_time,
  throttled_time,
  thermal_time,
  board_limit_time,
  reliability_time,
  software_thermal_time,
  hardware_thermal_time,
  power_brake_time,
  pcie_generation,
  pcie_width,
  pcie_sent,
  pcie_received,
  ecc_corrected,
  ecc_uncorrected,
  recovery_action,
  foreign_processes,
};

enum class SignalKind { counter, gauge };

struct Signal {
  SignalId id;
  std::string_view name;
  std::string_view unit;
  SignalKind kind;
};

inline constexpr std::array kSignals = {
    Signal{SignalId::power, "power", "W", SignalKind::gauge},
    Signal{SignalId::average_power, "average_power", "W", SignalKind::gauge},
    Signal{SignalId::energy, "energy", "J", SignalKind::counter},
    Signal{SignalId::requested_limit, "requested_limit", "W", SignalKind::gauge},
    Signal{SignalId::enforced_limit, "enforced_limit", "W", SignalKind::gauge},
    Signal{SignalId::default_limit, "default_limit", "W", SignalKind::gauge},
    Signal{SignalId::min_limit, "min_limit", "W", SignalKind::gauge},
    Signal{SignalId::max_limit, "max_limit", "W", SignalKind::gauge},
    Signal{SignalId::sm_clock, "sm_clock", "MHz", SignalKind::gauge},
    Signal{SignalId::memory_clock, "memory_clock", "MHz", SignalKind::gauge},
    Signal{SignalId::graphics_clock, "graphics_clock", "MHz", SignalKind::gauge},
    Signal{SignalId::temperature, "temperature", "C", SignalKind::gauge},
    Signal{SignalId::memory_temperature, "memory_temperature", "C", SignalKind::gauge},
    Signal{SignalId::temperature_margin, "temperature_margin", "C", SignalKind::gauge},
    Signal{SignalId::fan, "fan", "%", SignalKind::gauge},
    Signal{SignalId::gpu_utilisation, "gpu_utilisation", "%", SignalKind::gauge},
    Signal{SignalId::memory_utilisation, "memory_utilisation", "%", SignalKind::gauge},
    Signal{SignalId::memory_used, "memory_used", "B", SignalKind::gauge},
    Signal{SignalId::memory_total, "memory_total", "B", SignalKind::gauge},
    Signal{SignalId::event_reasons, "event_reasons", "mask", SignalKind::gauge},
    Signal{SignalId::power_capped_time, "power_capped_time", "s", SignalKind::counter},
    Signal{SignalId::throttled_time, "throttled_time", "s", SignalKind::counter},
    Signal{SignalId::thermal_time, "thermal_time", "s", SignalKind::counter},
    Signal{SignalId::board_limit_time, "board_limit_time", "s", SignalKind::counter},
    Signal{SignalId::reliability_time, "reliability_time", "s", SignalKind::counter},
    Signal{SignalId::software_thermal_time, "software_thermal_time", "s", SignalKind::counter},
    Signal{SignalId::hardware_thermal_time, "hardware_thermal_time", "s", SignalKind::counter},
    Signal{SignalId::power_brake_time, "power_brake_time", "s", SignalKind::counter},
    Signal{SignalId::pcie_generation, "pcie_generation", "", SignalKind::gauge},
    Signal{SignalId::pcie_width, "pcie_width", "lanes", SignalKind::gauge},
    Signal{SignalId::pcie_sent, "pcie_sent", "B", SignalKind::counter},
    Signal{SignalId::pcie_received, "pcie_received", "B", SignalKind::counter},
    Signal{SignalId::ecc_corrected, "ecc_corrected", "errors", SignalKind::counter},
    Signal{SignalId::ecc_uncorrected, "ecc_uncorrected", "errors", SignalKind::counter},
    Signal{SignalId::recovery_action, "recovery_action", "code", SignalKind::gauge},
    Signal{SignalId::foreign_processes, "foreign_processes", "", SignalKind::gauge},
};

/// The values of all signals at one time; what a device does not tell is nullopt.
class Sample {
 public:
  std::optional<double>& operator[](SignalId id) {
    return values_[static_cast<std::size_t>(id)];
  }
  const std::optional<double>& operator[](SignalId id) const {
    return values_[static_cast<std::size_t>(id)];
  }

 private:
  std::array<std::optional<double>, kSignals.size()> values_;
};

}  // namespace halfwatt
