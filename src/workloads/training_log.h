#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "engine/train/fit.h"

namespace halfwatt {

/// What the last steps cost, ten or so, each of which counts less than the one after it:
/// numbers of single ones jump. nullopt where nobody knows.
struct StepCost {
  std::optional<double> images_per_second;
  std::optional<double> waited_share;  ///< of the steps' time, for their data
  std::optional<Watts> power;          ///< of what the meter reads; nullopt: there is none
  std::optional<Joules> per_image;
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

  /// Writes of a step, and says what it and those before it cost.
  StepCost add(const StepEvent& event);
  /// Writes of an evaluation, whose energy is not that of the step behind it.
  void add(const EvaluationEvent& event);
  /// Why a line is not on the disk; nullopt if all are.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  /// Of steps, each of which counts less than the one after it.
  struct Sum {
    double images = 0;
    Seconds took;
    Seconds waited;
    Joules energy;
  };

  TrainingLog(Device* meter) : meter_(meter) {}
  std::optional<Joules> energy_since_last();
  static void add(Sum& sum, const StepEvent& event, Joules energy);
  void write(std::ofstream& to, const char* name, const std::string& line);

  Device* meter_;
  std::ofstream metrics_;
  std::ofstream speed_;
  std::optional<Joules> last_;  ///< the meter's
  Sum all_;
  Sum metered_;  ///< of the steps whose energy is known
  std::optional<Error> failure_;
};

/// The line of a step in metrics.jsonl, and that of an evaluation. Numbers that are not finite
/// are null.
std::string metrics_line(const StepEvent& event);
std::string metrics_line(const EvaluationEvent& event);

}  // namespace halfwatt
