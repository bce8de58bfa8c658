#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/devices.h"

namespace halfwatt {

/// What is there on this machine.
struct Machine {
  std::string cpu;                     ///< model name; empty: unknown
  unsigned threads = 0;                ///< 0: unknown
  std::vector<std::string> gpus;       ///< models of NVIDIA cards with a loaded driver
  std::optional<std::string> trouble;  ///< why NVML gives no access to them
};

/// Asks NVML for cards, and /proc for what it does not tell.
Machine look_at_machine(const DevicePlaces& places = usual_places());

/// A few lines: what is there; `program`: how it was called; and the one command to try next.
std::string overview(const Machine& machine, const std::string& program);
/// The one command to try next on this machine.
std::string next_command(const Machine& machine, const std::string& program);

}  // namespace halfwatt
