#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace halfwatt {

/// Environment variables to add: names with values.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// An open file that is closed with its owner; -1 for none. Never one of 0, 1 and 2, and never
/// inherited by a program that is started.
class OwnedFile {
 public:
  OwnedFile() = default;
  /// Takes `descriptor`, and moves it out of the way of standard input and output.
  explicit OwnedFile(int descriptor);
  OwnedFile(OwnedFile&& other) noexcept : descriptor_(other.release()) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept;
  ~OwnedFile() { close(); }

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  void close();
  int release();

 private:
  int descriptor_ = -1;
};

/// How a program is started. Without a shell: `words` are its arguments as they are.
struct SpawnOptions {
  std::vector<std::string> words;  ///< at least the program
  Environment environment;         ///< added to ours
  int input = 0;                   ///< descriptors that become its 0, 1 and 2
  int output = 1;
  int errors = 2;
  /// Its own session, away from our terminal, and not only its own process group.
  bool own_session = false;
  bool terminal_is_output = false;  ///< `output` is the terminal that controls its session
  int terminal_to_take = -1;        ///< whose foreground its group becomes
  int cgroup = -1;                  ///< open `cgroup.procs` that it enters
  /// Called with the new process group before the program begins.
  std::function<void(pid_t)> before_exec = {};
  bool dies_with_us = false;  ///< gets SIGTERM when the thread that starts it ends
};

/// Starts a program in a process group of its own, with default signals, nothing blocked and no
/// open file but 0, 1 and 2. Signals that were ignored when we were started stay so (nohup).
/// Returns its process id when it runs. Errors, of the kinds no_such_command and
/// not_executable where they are that: one line that names the program.
Result<pid_t> spawn(const SpawnOptions& options);

}  // namespace halfwatt
