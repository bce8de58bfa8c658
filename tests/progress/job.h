#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace halfwatt {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// A real process of a test; killed and reaped at the end if it still runs.
class Job {
 public:
  /// `words`: a program, by path or found in PATH, and its arguments.
  Job(const std::vector<std::string>& words, const Environment& environment);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  pid_t id() const { return id_; }
  /// Waits for its end: the exit status, or 128 and the signal.
  int wait();
  void kill(int signal) const;

 private:
  pid_t id_ = -1;
};

/// The program beside the built halfwatt: progress_writer.
std::string beside_halfwatt(const std::string& name);

/// Runs a job of tests/progress/progress_writer.c to its end: its exit status.
int write_steps(const std::string& what, int steps, const Environment& environment);

}  // namespace halfwatt
