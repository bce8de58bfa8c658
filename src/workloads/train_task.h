#pragma once

#include <memory>

#include "workloads/engine_task.h"
#include "workloads/model_choice.h"

namespace halfwatt {

/// Whole training steps with AdamW, as a `Trainer` does them: images, loss, gradients,
/// update and the watch on the numbers. `device.backend` outlives it.
std::unique_ptr<EngineTask> train_task(ModelChoice choice, EngineDevice device);

}  // namespace halfwatt
