#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "engine/train/fit.h"

namespace halfwatt {

/// What a step cost, beside what it computed.
struct StepCost {
  double images_per_second = 0;
  double waited_share = 0;       ///< of the step's time, for its data
  std::optional<Joules> joules;  ///< of its images; nullopt: no meter, or its first reading
};

/// The two logs of a training, JSON Lines in its folder: `metrics.jsonl`, which holds what the
/// training computed and is the same to the byte however often it was interrupted, and
/// `speed.jsonl`, which holds what that took. docs/training.md has their fields.
class TrainingLog {
 public:
  /// Goes on with logs that are there, without what they tell of steps behind `attempt`: a
  /// training that goes on does these again. `meter` outlives it; nullptr: there is none.
  /// Errors: a log cannot be read, cut or written.
  static Result<TrainingLog> open(const std::filesystem::path& folder,
                                  std::int64_t attempt,
                                  Device* meter);

  StepCost add(const StepEvent& event);
  void add(const EvaluationEvent& event);
  /// Why a line is not on the disk; nullopt if all are.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  TrainingLog(Device* meter) : meter_(meter) {}
  void write(std::ofstream& to, const char* name, const std::string& line);

  Device* meter_;
  std::ofstream metrics_;
  std::ofstream speed_;
  std::optional<Joules> last_;  ///< the meter's
  std::optional<Error> failure_;
};

/// The line of a step in metrics.jsonl, and that of an evaluation. Numbers that are not finite
/// are null.
std::string metrics_line(const StepEvent& event);
std::string metrics_line(const EvaluationEvent& event);

}  // namespace halfwatt
