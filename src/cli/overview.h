#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace halfwatt {

/// What is there on this machine, as far as files tell without a driver call.
struct Machine {
  std::string cpu;                ///< model name; empty: unknown
  unsigned threads = 0;           ///< 0: unknown
  std::vector<std::string> gpus;  ///< models of NVIDIA cards with a loaded driver
};

/// Reads `root`/proc; `root` is "/" but in tests.
Machine look_at_machine(const std::filesystem::path& root);

/// A few lines: what is there; `program`: how it was called; and the one command to try next.
std::string overview(const Machine& machine, const std::string& program);
/// The one command to try next on this machine.
std::string next_command(const Machine& machine, const std::string& program);

}  // namespace halfwatt
