#pragma once

#include <memory>

#include "engine/models/vit.h"
#include "workloads/engine_task.h"

namespace halfwatt {

/// A model that is measured, on random data.
struct ModelChoice {
  VitConfig model;
  std::uint64_t seed = 1;
};

/// Whole training steps with AdamW, as a `Trainer` does them: images, loss, gradients,
/// update and the watch on the numbers. `device.backend` outlives it.
std::unique_ptr<EngineTask> train_task(ModelChoice choice, EngineDevice device);

}  // namespace halfwatt
