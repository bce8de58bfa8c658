#pragma once

#include <memory>
#include <string_view>

#include "engine/exec/session.h"

namespace halfwatt {

/// One plan on one device with its states and inputs set, ready to be run over and over.
class PlanRun {
 public:
  /// Parameters are as initial_value() has them, float inputs normal numbers; labels, keys and
  /// counts are 1. `backend` outlives it. Errors: no memory.
  static Result<std::unique_ptr<PlanRun>> open(Plan plan, Backend& backend, std::uint64_t seed);

  const Plan& plan() const { return session_->plan(0); }
  /// Errors: the device is lost.
  Result<void> run(const Session::OnStep& on_step = {}) { return session_->run(0, on_step); }
  /// A result of the last run, as f32.
  Tensor result(std::string_view name) const;
  /// Whether every element of that result of the last run is finite.
  bool is_finite(std::string_view result) const;

 private:
  States states_;
  std::unique_ptr<Session> session_;
};

}  // namespace halfwatt
