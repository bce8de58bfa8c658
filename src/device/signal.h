#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace halfwatt {

/// What a device tells about itself; a new one is a row here and the line that reads it.
enum class SignalId : std::size_t {
  power,
  requested_limit,
  enforced_limit,
  sm_clock,
  memory_clock,
  temperature,
  fan,
  memory_used,
  power_capped_time,
  throttled_time,
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
    Signal{SignalId::requested_limit, "requested_limit", "W", SignalKind::gauge},
    Signal{SignalId::enforced_limit, "enforced_limit", "W", SignalKind::gauge},
    Signal{SignalId::sm_clock, "sm_clock", "MHz", SignalKind::gauge},
    Signal{SignalId::memory_clock, "memory_clock", "MHz", SignalKind::gauge},
    Signal{SignalId::temperature, "temperature", "C", SignalKind::gauge},
    Signal{SignalId::fan, "fan", "%", SignalKind::gauge},
    Signal{SignalId::memory_used, "memory_used", "B", SignalKind::gauge},
    Signal{SignalId::power_capped_time, "power_capped_time", "s", SignalKind::counter},
    Signal{SignalId::throttled_time, "throttled_time", "s", SignalKind::counter},
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
