#pragma once

#include <optional>

#include "device/nvml_api.h"
#include "device/signal.h"

namespace halfwatt {

/// A field's value as a number, whatever type it came in; nullopt where the field failed or its
/// type is unknown.
std::optional<double> number(const nvml::FieldValue& field);

/// Which fields one call asks for: those that the driver has at hand, or also those for which
/// it asks the card, 0.5 to 1 ms each on an H200.
enum class FieldSet { quick, all };

/// Reads the signals that come as fields into `sample`, with one call; a field that fails
/// leaves only itself unknown. Returns nvml::kGpuIsLost if the card is gone, otherwise what the
/// call returned.
nvml::Return read_fields(const nvml::Calls& calls,
                         nvml::DeviceHandle card,
                         FieldSet set,
                         Sample& sample);

}  // namespace halfwatt
