#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace halfwatt {

/// A control group (cgroup) whose limits hold for this process.
struct ControlGroup {
  int version = 2;  ///< of the kernel's interface, 1 or 2: their files have other names
  std::filesystem::path folder;
};

/// The groups that may limit what `controller` ("cpu", "memory") gives this process: by
/// /proc/self/cgroup its own and all above it, up to where the hierarchy is mounted. Not every
/// folder is there: in a container the path may be the host's, and the mount's root is the
/// container's group. None where /proc says nothing. `root` is for made-up machines.
std::vector<ControlGroup> control_groups(std::string_view controller,
                                         const std::filesystem::path& root = "/");

}  // namespace halfwatt
