#pragma once

#include <optional>

#include "device/nvml_api.h"
#include "device/signal.h"

namespace halfwatt {

/// A field's value as a number, whatever type it came in; nullopt where the field failed or its
/// type is unknown.
std::optional<double> number(const nvml::FieldValue& field);

/// Reads every signal that comes as a field into `sample`, with one call; a field that fails
/// leaves only itself unknown. Returns nvml::kGpuIsLost if the card is gone, otherwise what the
/// call returned.
nvml::Return read_fields(const nvml::Calls& calls, nvml::DeviceHandle card, Sample& sample);

}  // namespace halfwatt
