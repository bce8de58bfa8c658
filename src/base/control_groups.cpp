#include "base/control_groups.h"

#include <fstream>
#include <string>

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

const fs::path kMounts = "sys/fs/cgroup";

// Where the hierarchy of a line of /proc/self/cgroup may be mounted: "0::/a" is version 2,
// "4:cpu,cpuacct:/a" is version 1.
std::vector<ControlGroup> hierarchies(const std::string& controllers,
                                      const std::string& controller) {
  if (controllers.empty()) {
    return {{2, kMounts}, {2, kMounts / "unified"}};
  }
  if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) {
    return {};
  }
  if (controllers == controller) {
    return {{1, kMounts / controller}};
  }
  return {{1, kMounts / controller}, {1, kMounts / controllers}};
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const fs::path& root) {
  std::vector<ControlGroup> all;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const fs::path own = fs::path(line.substr(second + 1)).relative_path();
    for (const auto& [version, mount] :
         hierarchies(line.substr(first + 1, second - first - 1), std::string(controller))) {
      for (fs::path group = own;; group = group.parent_path()) {
        all.push_back({version, root / mount / group});
        if (group.empty()) {
          break;
        }
      }
    }
  }
  return all;
}

}  // namespace halfwatt
