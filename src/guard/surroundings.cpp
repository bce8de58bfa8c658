#include "guard/surroundings.h"

#include <fstream>
#include <optional>

namespace halfwatt {
namespace {

std::optional<std::string> first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  return std::getline(in, line) ? std::optional(line) : std::nullopt;
}

// The path of this process in the one hierarchy of cgroup 2: "0::/user.slice/...".
std::string cgroup_path(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0::/")) {
      return line.substr(4);
    }
  }
  return {};
}

// "NSpid:  4711  1": the number within the innermost namespace is the last one.
bool is_first_process(const std::filesystem::path& root, const std::string& of) {
  std::ifstream in(root / "proc" / of / "status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("NSpid:")) {
      const std::size_t at = line.find_last_of("\t ");
      return line.substr(at + 1) == "1";
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> deaths_at_once(const std::filesystem::path& root) {
  std::vector<std::string> found;
  if (is_first_process(root, "self")) {
    found.push_back(
        "halfwatt is process 1 of its container: if it is killed, the kernel kills the "
        "guardian "
        "too; start the container with --init, or run halfwatt restore on the host afterwards");
  }
  const std::filesystem::path group = root / "sys/fs/cgroup" / cgroup_path(root);
  for (const auto* name : {"memory.oom.group", "unified/memory.oom.group"}) {
    if (first_line(group / name) == "1") {
      found.push_back(
          "memory.oom.group is set here: if memory runs out, the kernel kills the guardian "
          "too; "
          "halfwatt restore puts limits back then");
      break;
    }
  }
  const std::string path = cgroup_path(root);
  if (path.find("slurm") != std::string::npos || path.find("/job_") != std::string::npos) {
    found.push_back(
        "Slurm kills a job's cgroup at its end: put halfwatt restore into the epilog "
        "(docs/guard.md)");
  } else if (path.ends_with(".service")) {
    found.push_back(
        "a service is killed with its cgroup: add ExecStopPost=halfwatt restore to its unit "
        "(docs/guard.md)");
  }
  return found;
}

}  // namespace halfwatt
