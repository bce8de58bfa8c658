#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/plan/summary.h"
#include "report/document.h"

namespace halfwatt {

/// What was planned, beside what became of it.
struct PlanTitle {
  std::string model;
  std::string mode;  ///< "train", "infer"
  std::string precision;
  std::int64_t batch = 0;  ///< of one micro-batch
  int micro_batches = 1;
  bool recompute = false;
  /// Of a plan on several devices: the fastest that computes it alone, and its time.
  std::optional<std::pair<std::string, Seconds>> alone = {};
  std::vector<std::string> remarks = {};
  std::vector<std::pair<std::string, Seconds>> passes = {};  ///< how long each took

  std::int64_t images() const { return batch * micro_batches; }
};

/// Whether one device alone is as fast as the split; false where a time is unknown.
bool loses(const PlanTitle& title, const PlanSummary& summary);

/// The plan as an object of JSON, docs/plan.md; unknown is null.
std::string plan_json(const PlanTitle& title, const PlanSummary& summary);

/// The plan for people.
Document plan_document(const PlanTitle& title, const PlanSummary& summary);

/// "21.3 GiB".
std::string bytes_text(Bytes bytes);

}  // namespace halfwatt
