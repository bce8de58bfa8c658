#include "engine/data/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

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

struct Hierarchy {
  fs::path folder;
  Version version;
};

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

// The folders in which the hierarchy of a line of /proc/self/cgroup may be mounted: "0::/a" is
// v2, "4:memory:/a" is v1.
std::vector<Hierarchy> hierarchies(const std::string& controllers) {
  if (controllers.empty()) {
    return {{"sys/fs/cgroup", kVersion2}, {"sys/fs/cgroup/unified", kVersion2}};
  }
  if (("," + controllers + ",").find(",memory,") != std::string::npos) {
    return {{"sys/fs/cgroup/memory", kVersion1}};
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> available_memory(const fs::path& root) {
  auto least = number_of(root / "proc/meminfo", "MemAvailable:");
  if (!least) {
    return std::nullopt;
  }
  *least *= 1024;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const fs::path own = fs::path(line.substr(second + 1)).relative_path();
    for (const auto& [folder, version] :
         hierarchies(line.substr(first + 1, second - first - 1))) {
      // Up to the mount's own root: in a container the path may be the host's, which is not
      // there, and the root is the container's group.
      for (fs::path group = own;; group = group.parent_path()) {
        least = std::min(*least, left_in(root / folder / group, version).value_or(*least));
        if (group.empty()) {
          break;
        }
      }
    }
  }
  return least;
}

}  // namespace halfwatt
