#include "engine/data/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "base/control_groups.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

// The files of one version of cgroups.
struct Version {
  const char* limit;
  const char* used;
  const char* idle;  ///< the line of memory.stat with the cached files that nobody uses
};
constexpr Version kVersion2{"memory.max", "memory.current", "inactive_file"};
constexpr Version kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                            "total_inactive_file"};

// The number behind `key` in lines of "key number".
std::optional<std::int64_t> number_of(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ') {
      return std::atoll(line.c_str() + key.size());
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> left_in(const fs::path& group, const Version& version) {
  std::int64_t limit = 0;
  std::int64_t used = 0;
  // "max" is no number, and v1's limit that is none is larger than any machine.
  if (!(std::ifstream(group / version.limit) >> limit) ||
      !(std::ifstream(group / version.used) >> used)) {
    return std::nullopt;
  }
  const std::int64_t idle = number_of(group / "memory.stat", version.idle).value_or(0);
  return std::max<std::int64_t>(limit - used + std::min(idle, used), 0);
}

}  // namespace

std::optional<std::int64_t> available_memory(const fs::path& root) {
  auto least = number_of(root / "proc/meminfo", "MemAvailable:");
  if (!least) {
    return std::nullopt;
  }
  *least *= 1024;
  for (const ControlGroup& group : control_groups("memory", root)) {
    const Version& version = group.version == 1 ? kVersion1 : kVersion2;
    least = std::min(*least, left_in(group.folder, version).value_or(*least));
  }
  return least;
}

}  // namespace halfwatt
