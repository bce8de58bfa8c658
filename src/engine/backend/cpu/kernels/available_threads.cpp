#include "engine/backend/cpu/kernels/available_threads.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace halfwatt::cpu {
namespace {

namespace fs = std::filesystem;

int threads_by_affinity() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return CPU_COUNT(&set);
  }
  // More processors than a cpu_set_t has room for.
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Processors that a quota is worth; nullopt if there is none ("max", -1) or no file.
std::optional<double> processors(double quota, double period) {
  if (quota > 0 && period > 0) {
    return quota / period;
  }
  return std::nullopt;
}

std::optional<double> quota_of(const fs::path& group) {
  if (std::ifstream file(group / "cpu.max"); file) {
    double quota = 0;
    double period = 0;
    file >> quota >> period;  // "max 100000" leaves both at 0
    return processors(quota, period);
  }
  double quota = 0;
  double period = 0;
  std::ifstream(group / "cpu.cfs_quota_us") >> quota;
  std::ifstream(group / "cpu.cfs_period_us") >> period;
  return processors(quota, period);
}

// The folders in which the hierarchy of a line of /proc/self/cgroup may be mounted: "0::/a" is
// v2, "4:cpu,cpuacct:/a" is v1.
std::vector<fs::path> hierarchies(const std::string& controllers) {
  if (controllers.empty()) {
    return {"sys/fs/cgroup", "sys/fs/cgroup/unified"};
  }
  if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
    return {"sys/fs/cgroup/cpu", fs::path("sys/fs/cgroup") / controllers};
  }
  return {};
}

}  // namespace

int available_threads(const fs::path& root) {
  double least = threads_by_affinity();
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const fs::path own = fs::path(line.substr(second + 1)).relative_path();
    for (const fs::path& hierarchy : hierarchies(line.substr(first + 1, second - first - 1))) {
      // Up to the mount's own root: in a container the path may be the host's, which is not
      // there, and the root is the container's group.
      for (fs::path group = own;; group = group.parent_path()) {
        least = std::min(least, quota_of(root / hierarchy / group).value_or(least));
        if (group.empty()) {
          break;
        }
      }
    }
  }
  return std::max(1, static_cast<int>(least));
}

}  // namespace halfwatt::cpu
