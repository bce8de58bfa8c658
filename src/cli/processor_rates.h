#pragma once

#include <span>

#include "engine/backend/backend.h"
#include "engine/passes/precision.h"
#include "workloads/op_rates.h"

namespace halfwatt {

/// How fast this machine's processors do what these precisions ask for, on so many threads: as
/// it was measured once and kept in a file of the user's. What was not is measured now on
/// `backend`, with a line on stderr, and kept; `fresh` measures all of it again. Errors: as
/// probe().
Result<OpRates> processor_rates(Backend& backend,
                                int threads,
                                std::span<const Precision> precisions,
                                bool fresh = false);

}  // namespace halfwatt
