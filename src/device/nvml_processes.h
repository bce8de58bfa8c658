#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "device/nvml_api.h"

namespace halfwatt {

/// What NVML says of the processes that compute on a card.
struct CardProcesses {
  std::vector<pid_t> pids;
  bool whole = true;  ///< false: some records made no sense and are left out
};

/// Reads the processes; copes with drivers that write longer records than they declare. nullopt
/// where the card does not tell; `lost` is set where it is gone.
std::optional<CardProcesses> read_processes(const nvml::Calls& calls,
                                            nvml::DeviceHandle card,
                                            bool& lost);

/// Whether NVML's pids are those of this process's pid namespace. In a container they are the
/// host's, or are hidden. `root` is where /proc is looked for.
bool sees_all_processes(const std::filesystem::path& root);

/// Whether `pid` is `ancestor` or was started by it, at any remove. False once it is gone.
bool descends_from(pid_t pid, pid_t ancestor);

/// How many of the processes are not `own`; nullopt where that cannot be known: records that
/// made no sense, or a pid namespace (`sees_all`) that hides others.
std::optional<int> count_foreign(const CardProcesses& processes,
                                 const std::function<bool(pid_t)>& own,
                                 bool sees_all);

}  // namespace halfwatt
