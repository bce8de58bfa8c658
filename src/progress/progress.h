#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numerical_state.h"
#include "base/result.h"
#include "base/units.h"
#include "progress/step_counter.h"

namespace halfwatt {

/// How far a foreign job has come. Only differences mean anything: where the count starts is
/// the source's affair.
struct ProgressReading {
  double steps = 0;             ///< so far, of the slowest rank; never goes back
  Seconds at;                   ///< CLOCK_MONOTONIC, when `steps` last changed
  std::optional<double> items;  ///< so far, of all ranks together
  std::optional<double> loss;   ///< the last one told; may be not finite
  /// How often something else became what is counted: another source, another bar of the
  /// output. A window in which this changed is void.
  std::uint64_t changes = 0;
  /// Set where step numbers come that went back, and are no progress.
  std::optional<StepFall> fall;
};

/// What tells the progress of a job.
enum class ProgressKind { page, socket, expression, none };

std::string_view text(ProgressKind kind);

/// What a user may say about how progress is told.
struct ProgressOptions {
  std::optional<std::string> step_regex;  ///< --progress-regex; overrides the preset's steps
  std::optional<std::string> loss_regex;  ///< --loss-regex; overrides the preset's losses
  std::optional<std::string> preset;      ///< tqdm, hf-trainer, lightning, auto (the default)
  /// An existing folder of this run alone, where page and socket are made.
  std::filesystem::path folder;
};

/// Where a foreign job stands, from the best of its sources that has spoken: the shared page
/// (docs/progress.md), the socket of `halfwatt step`, expressions on its output. Used by one
/// thread.
class Progress {
 public:
  /// Makes page and socket. Errors: bad input that names the flag and why its expression or
  /// preset is none; a folder that cannot be written.
  static Result<Progress> open(const ProgressOptions& options);

  Progress(Progress&&) noexcept;
  Progress& operator=(Progress&&) noexcept;
  ~Progress();

  /// What the environment of the job must contain.
  std::vector<std::pair<std::string, std::string>> environment() const;
  /// Bytes of the job's stdout or stderr as they arrive, cut anywhere; `at` is when.
  void take_output(std::string_view bytes, Seconds at);
  /// Reads all sources; never blocks. nullopt until the first has spoken.
  std::optional<ProgressReading> latest();
  /// The source that latest() gave. When another one speaks, `steps` goes on from where it was.
  ProgressKind kind() const;
  /// From the losses seen since window_begins(): dead if one was not finite; stalled if there
  /// were at least five and all were equal to the last digit; unknown if there was none.
  NumericalState numerical_state();
  void window_begins();
  /// The job was started again: its counts go on from where they were, whatever its numbers.
  /// Called after the old job has ended and before the new one starts.
  void job_restarts();
  /// Readable when a message of `halfwatt step` waits; for poll(), beside the output of the
  /// job.
  int socket_descriptor() const;
  /// What a user should know, each said once: a message nobody can read, a full page.
  std::vector<std::string> take_remarks();

 private:
  struct Sources;
  explicit Progress(std::unique_ptr<Sources> sources);
  std::unique_ptr<Sources> sources_;
};

}  // namespace halfwatt
