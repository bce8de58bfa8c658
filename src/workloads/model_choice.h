#pragma once

#include <cstdint>
#include <string_view>

#include "engine/models/vit.h"
#include "measure/workload.h"

namespace halfwatt {

/// A model that is measured, on random data.
struct ModelChoice {
  VitConfig model;
  std::uint64_t seed = 1;
};

/// Name, labels and unit of a task with that model; `mode` is train or infer.
WorkloadInfo info_of(const ModelChoice& choice, std::string_view mode);

}  // namespace halfwatt
