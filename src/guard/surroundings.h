#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace halfwatt {

/// What may end halfwatt and its guardian at once, so that only the next start or `halfwatt
/// restore` puts limits back: halfwatt is PID 1 of its container, its cgroup is killed as one
/// when memory runs out, or a service manager or job scheduler ends the whole cgroup. One
/// sentence each, with the way out. Reads `root`/proc and `root`/sys.
std::vector<std::string> deaths_at_once(const std::filesystem::path& root = "/");

}  // namespace halfwatt
