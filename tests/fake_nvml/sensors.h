#pragma once

#include <cstdint>

#include "fake_nvml/library.h"

/// What the sensors of a card say, derived from its history.
namespace halfwatt::fake_nvml {

/// Power over the last window before the last update of the sensor.
std::uint32_t instant_mw(Call& call);
/// Power over the last second, updated at the same times.
std::uint32_t average_mw(Call& call);
bool is_idle(Call& call);
std::uint32_t sm_mhz(Call& call);
/// Follows the power of the last 20 s.
std::int32_t temperature_c(Call& call);
std::uint64_t event_reasons(Call& call);
/// The bytes that went over PCIe one way since the state began.
std::uint64_t pcie_bytes(Call& call);

}  // namespace halfwatt::fake_nvml
