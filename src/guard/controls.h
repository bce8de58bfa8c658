#pragma once

#include <memory>
#include <string>

#include "device/nvml_library.h"
#include "guard/limit_control.h"

namespace halfwatt {

/// Opens what reads and writes the limits of cards; loads NVML when the first real card needs
/// it, and keeps it.
class LimitControls {
 public:
  /// `card`: `GPU-<uuid>`, by NVML, or `limit-file:PATH`. Errors: no such card, no NVML.
  Result<std::unique_ptr<LimitControl>> open(const std::string& card);

 private:
  std::shared_ptr<const NvmlLibrary> nvml_;  // shared with the controls that it opened
};

/// Whether cards here are real: no other NVML stands in the place of the driver's.
bool real_cards_are_here();

/// Whether the whole machine shares `card`: a real one, not one of a simulation or a test.
bool is_shared_card(const std::string& card);

}  // namespace halfwatt
