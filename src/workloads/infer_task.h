#pragma once

#include <memory>

#include "workloads/engine_task.h"
#include "workloads/model_choice.h"

namespace halfwatt {

/// Forward passes to logits, which are looked at for being finite. `device.backend` outlives
/// it.
std::unique_ptr<EngineTask> infer_task(ModelChoice choice, EngineDevice device);

}  // namespace halfwatt
