#pragma once

#include <filesystem>

namespace halfwatt::cpu {

/// How many threads this process can run at once: the processors its affinity names, or fewer
/// where the quota of a cgroup (v2's cpu.max, v1's cpu.cfs_quota_us, its own or one above) is
/// less, rounded down, as a thread that is throttled holds up all others. At least 1.
int available_threads(const std::filesystem::path& root = "/");

}  // namespace halfwatt::cpu
