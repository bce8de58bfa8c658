#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "measure/process_tree.h"
#include "measure/spawn.h"
#include "measure/terminal.h"

namespace halfwatt {

/// How a command ended.
struct JobEnd {
  std::optional<int> status;   ///< of exit()
  std::optional<int> killed;   ///< by this signal
  bool out_of_memory = false;  ///< the kernel killed it for want of memory

  bool success() const { return status == 0; }
  /// As a shell tells it: the status, or 128 and the signal's number.
  int shell_status() const { return status ? *status : 128 + killed.value_or(0); }
};

/// "ended with status 3", "was killed by SIGKILL".
std::string text(const JobEnd& end);

/// What happens to a command's output.
enum class JobOutput {
  pass,      ///< it goes where ours goes; so does its input
  pipe,      ///< read by us, through a pipe
  terminal,  ///< read by us, through a pseudo terminal
};

/// What to start, and how.
struct JobOptions {
  std::vector<std::string> words;  ///< the command; no shell sees it
  Environment environment;         ///< added to ours
  JobOutput output = JobOutput::pass;
  Terminal* terminal = nullptr;  ///< with `pass`: given to the job if it is ours
  /// A throw-away copy: held in a cgroup where possible, and ended with us.
  bool ends_with_us = false;
  /// Called before a throw-away copy is started with how it is found where we die without a
  /// word: the mark in its environment, and its cgroup's open `cgroup.kill` or -1.
  std::function<void(const std::string& mark, int cgroup_kill)> on_copy = {};
  /// Called with the process group before the command begins.
  std::function<void(pid_t)> before_exec = {};
  /// Called with the process group when it runs, and with nullopt before its number can become
  /// somebody else's.
  std::function<void(std::optional<pid_t>)> on_group;
};

/// A running command: its process group, its descendants and its output.
///
/// Start jobs from one thread, which outlives them. A throw-away copy that still runs is ended
/// with its Job; any other is left alone.
class Job {
 public:
  /// Errors: as spawn().
  static Result<std::unique_ptr<Job>> start(JobOptions options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  pid_t group() const { return leader_; }
  const std::string& name() const { return options_.words.front(); }
  /// The output to read from; -1 if it passes through.
  int output() const { return output_.get(); }
  /// What it must be known that we cannot hold, as sentences for people.
  const std::vector<std::string>& remarks() const { return remarks_; }
  ProcessTree& tree() { return tree_; }
  const ProcessTree& tree() const { return tree_; }

  /// How it ended; nullopt while it runs. Does not wait.
  const std::optional<JobEnd>& ended();
  /// The signal that stopped it since the last call, if one did.
  std::optional<int> stopped();
  /// To its process group.
  void signal(int number) const;
  /// Stops its process group, until go_on().
  void stop();
  /// It was stopped and stays so, also where somebody slows it in turns, until go_on().
  void stay_stopped();
  /// Continues it.
  void go_on();
  /// Ends it and all that it started: SIGTERM, `grace`, SIGKILL. Errors: what still runs.
  Result<void> end(Seconds grace = Seconds(5));

 private:
  explicit Job(JobOptions options) : options_(std::move(options)) {}
  Result<OwnedFile> open_output(SpawnOptions& how);
  void take_end(int status, bool was_killed);
  bool gone();
  bool wait_until_gone(Seconds most);

  JobOptions options_;
  ProcessTree tree_;
  std::optional<JobCgroup> cgroup_;
  OwnedFile output_;
  pid_t leader_ = 0;
  std::optional<JobEnd> end_;
  bool killed_by_us_ = false;
  bool stays_stopped_ = false;
  std::optional<long> memory_kills_;  ///< of the machine, when the job began
  std::vector<std::string> remarks_;
};

}  // namespace halfwatt
