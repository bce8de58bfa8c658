#pragma once

#include <memory>
#include <string>

#include "guard/limit_control.h"

namespace halfwatt {

/// Opens what reads and writes the limit of `card`: `GPU-<uuid>` by NVML, `limit-file:PATH`.
/// Errors: no such card.
Result<std::unique_ptr<LimitControl>> open_limit_control(const std::string& card);

/// Whether the whole machine shares `card`: a real one, not one of a simulation or a test.
bool is_shared_card(const std::string& card);

}  // namespace halfwatt
