#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "measure/command_template.h"
#include "measure/job.h"
#include "measure/output_reader.h"
#include "measure/output_tail.h"
#include "measure/workload.h"
#include "progress/progress.h"

namespace halfwatt {

/// How job control reaches a copy that is measured, which is in no shell's list of jobs: asked
/// between two looks at it, stopped and continued with us. Each may be empty.
struct StopSignals {
  std::function<bool()> asked;
  /// Stops this process, and returns when it is continued; gets the copy's group, which is
  /// stopped by then.
  std::function<void(pid_t)> stop_us;
  /// How often this process was continued so far, whoever stopped it.
  std::function<int()> times_continued;
};

/// How a command is run to be measured.
struct ProcessOptions {
  CommandTemplate command;
  std::vector<KnobValues> knobs;
  std::optional<ItemsExpression> items;  ///< absent: what the progress tells, or 1
  std::string name;
  std::string unit = "step";  ///< of an item
  Labels labels;
  /// No progress is looked for: a step is a second of running, whatever it did.
  bool power_only = false;
  Environment environment;  ///< added to ours, and to what the progress needs
  JobOutput output = JobOutput::terminal;
  Seconds patience{300};  ///< for the first step after a start
  Seconds grace{5};       ///< between SIGTERM and SIGKILL
  /// Gets all output as it comes, from another thread; may be empty.
  std::function<void(std::string_view)> tee;
  /// As JobOptions: for a device that acts on the processes themselves.
  std::function<void(std::optional<pid_t>)> on_group;
  /// As JobOptions: for whoever ends the copy where we die.
  std::function<void(const std::string& mark, int cgroup_kill)> on_copy = {};
  /// Sentences for people: why a setting failed, what cannot be held.
  std::function<void(const std::string&)> tell;
  std::function<bool()> interrupted;
  StopSignals stop;
};

/// A throw-away copy of any command, run to be measured. It is started again when it ends, and
/// when a knob that stands in it changes; its steps go on counting. Memory that runs out makes
/// a setting "does not fit"; a failure makes it invalid, and the third in a row is an error of
/// the kind `workload`, as is a command that never shows a step.
class ProcessWorkload final : public Workload {
 public:
  /// `clock` is the steady clock of the machine: the command lives on no other.
  ProcessWorkload(ProcessOptions options, Progress progress, Clock& clock);
  ~ProcessWorkload() override;

  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override;
  /// Starts the command if it does not run with these values, and waits for its first step.
  Result<void> apply(const Setting& setting) override;
  Result<void> start() override { return {}; }  // apply() knows the values to start it with
  WorkDone work_done() override;
  NumericalState numerical_state() override;
  std::optional<Prediction> predict(const Setting&) const override { return std::nullopt; }
  void stop() override;

  /// Which source tells the steps.
  ProgressKind progress_kind();

 private:
  Result<void> launch();
  Result<void> wait_for_step();
  /// Looks whether the command ended, and starts it again where that is right.
  Result<void> look_after();
  Result<void> command_ended(const JobEnd& end);
  /// Does what Ctrl-Z asks for.
  void stop_if_asked();
  /// Time in which we were stopped counts as no patience.
  void see_stops();
  Result<void> failed(const std::string& how);
  /// No step came for as long as the user allows: the command is ended, and the setting void.
  void hangs();
  void update_items();
  std::optional<ProgressReading> reading();
  bool stepped_since_start();
  void tell(const std::string& sentence) const;
  std::string setting_text() const;
  Error no_step_at_all();

  ProcessOptions options_;
  Clock* clock_;
  WorkloadInfo info_;
  std::mutex mutex_;  ///< of progress_ and tail_, which the reader's thread feeds
  Progress progress_;
  OutputTail tail_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<OutputReader> reader_;  ///< after job_: it reads the job's output
  std::vector<std::string> words_;        ///< of the setting in force
  Setting setting_;
  std::set<std::vector<std::string>> too_large_;
  std::optional<WindowNote> stopped_;
  std::optional<Error> last_failure_;
  Seconds stepped_at_;  ///< when a step, or a start, was seen last
  double steps_seen_ = 0;
  std::optional<ProgressReading> at_start_;   ///< when the command was started last
  std::optional<ProgressReading> at_window_;  ///< when the last window began
  int starts_ = 0;
  int stops_ = 0;     ///< of this process, seen so far
  int failures_ = 0;  ///< in a row
  bool ever_stepped_ = false;
};

}  // namespace halfwatt
