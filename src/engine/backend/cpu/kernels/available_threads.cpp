#include "engine/backend/cpu/kernels/available_threads.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <thread>

#include "base/control_groups.h"

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

std::optional<double> quota_of(const ControlGroup& group) {
  double quota = 0;
  double period = 0;
  if (group.version == 2) {
    std::ifstream(group.folder / "cpu.max") >> quota >>
        period;  // "max 100000" leaves both at 0
  } else {
    std::ifstream(group.folder / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group.folder / "cpu.cfs_period_us") >> period;
  }
  return processors(quota, period);
}

}  // namespace

int available_threads(const fs::path& root) {
  double least = threads_by_affinity();
  for (const ControlGroup& group : control_groups("cpu", root)) {
    least = std::min(least, quota_of(group).value_or(least));
  }
  return std::max(1, static_cast<int>(least));
}

}  // namespace halfwatt::cpu
