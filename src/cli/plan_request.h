#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "engine/models/vit.h"
#include "engine/passes/pipeline.h"
#include "engine/plan/fit.h"

namespace halfwatt {

/// What `halfwatt plan` was asked, checked flag by flag.
struct PlanRequest {
  VitConfig model;
  ModelMode mode = ModelMode::train;
  std::optional<std::int64_t> batch;      ///< of a micro-batch; nullopt: the largest that fits
  std::optional<std::int64_t> effective;  ///< images of a step
  std::optional<Bytes> memory;            ///< of every device, instead of what its target has
  bool json = false;
  /// Precision, targets and the like; the fit decides about micro-batches and recompute.
  Compilation compilation;

  /// The step that --batch and --effective-batch say; batch must be there.
  StepCut asked() const;
};

/// The flags of the command.
std::vector<Option> plan_options();

/// Reads the flags. Errors: one that is wrong, in one line that names it.
Result<PlanRequest> plan_request(const Invocation& invocation);

}  // namespace halfwatt
