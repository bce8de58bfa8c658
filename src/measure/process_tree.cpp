#include "measure/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "guard/guardian.h"
#include "guard/own_children.h"

namespace halfwatt {
namespace {

// "PID (name) state parent group session ...": the name may hold anything, blanks and ")" too.
std::optional<ProcessInfo> process_info(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) {
    return std::nullopt;  // it ended meanwhile
  }
  ProcessInfo info;
  info.id = static_cast<pid_t>(std::strtol(pid.c_str(), nullptr, 10));
  info.name = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  char state = 0;
  rest >> state >> info.parent >> info.group >> info.session;
  info.zombie = state == 'Z' || state == 'X';
  return rest ? std::optional(info) : std::nullopt;
}

// By its command line, which everybody may read, whoever's it is.
bool runs_a_guardian(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  return words.ends_with(std::string(1, '\0') + std::string(kGuardianVerb) + '\0');
}

// Where version 2 is mounted, alone or beside version 1.
std::optional<std::string> cgroup_mount() {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string source;
    std::string folder;
    std::string kind;
    if (words >> source >> folder >> kind && kind == "cgroup2") {
      return folder;
    }
  }
  return std::nullopt;
}

std::optional<std::string> own_cgroup() {
  std::ifstream lines("/proc/self/cgroup");
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("0::/")) {
      return line.substr(3);
    }
  }
  return std::nullopt;
}

// The kernel removes none in which something lives.
void remove_what_was_left(const std::string& parent) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(parent.c_str()), &::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    pid_t maker = 0;
    int number = 0;
    if (std::sscanf(entry->d_name, "halfwatt-%d-%d", &maker, &number) == 2 &&
        ::kill(maker, 0) != 0 && errno == ESRCH) {
      ::rmdir((parent + entry->d_name).c_str());
    }
  }
}

}  // namespace

std::vector<ProcessInfo> all_processes() {
  std::vector<ProcessInfo> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), &::closedir);
  if (!folder) {
    return all;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) {
      continue;
    }
    if (auto info = process_info(entry->d_name)) {
      all.push_back(std::move(*info));
    }
  }
  return all;
}

Result<void> adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return Error{ErrorKind::workload,
                 fmt::format("processes that leave the job's group cannot be held: {}",
                             std::strerror(errno))};
  }
  return {};
}

ProcessTree::ProcessTree() {
  const pid_t self = ::getpid();
  for (const ProcessInfo& each : all_processes()) {
    if (each.parent == self) {
      ours_.push_back(each.id);
    }
  }
}

bool ProcessTree::is_ours(const ProcessInfo& process) const {
  return process.id != leader_ &&
         std::find(ours_.begin(), ours_.end(), process.id) != ours_.end();
}

std::vector<ProcessInfo> ProcessTree::members() const {
  std::vector<ProcessInfo> found;
  if (leader_ <= 0) {
    return found;
  }
  std::vector<ProcessInfo> others = all_processes();
  const std::vector<pid_t> own = own_children();  // after the list, which then holds no other
  const auto is_own = [&](const ProcessInfo& each) {
    // A guardian that comes to us as an orphan had a sudo before it that died.
    return is_ours(each) || std::find(own.begin(), own.end(), each.id) != own.end() ||
           (each.parent == ::getpid() && each.id != leader_ &&
            runs_a_guardian(std::to_string(each.id)));
  };
  std::set<pid_t> family;
  // Through parents alone: orphans come to us, and the numbers of groups are used again.
  const auto belongs = [&](const ProcessInfo& each) {
    return each.parent == ::getpid() || family.count(each.parent) > 0;
  };
  // Children may have lower numbers than their parents: until nobody new is found.
  for (bool grows = true; grows;) {
    grows = false;
    for (auto each = others.begin(); each != others.end();) {
      if (each->id == ::getpid() || !belongs(*each) || is_own(*each)) {
        ++each;
        continue;
      }
      family.insert(each->id);
      found.push_back(std::move(*each));
      each = others.erase(each);
      grows = true;
    }
  }
  return found;
}

void ProcessTree::send(int signal) const {
  const std::vector<ProcessInfo> all = members();
  if (std::any_of(all.begin(), all.end(),
                  [this](const auto& each) { return each.group == leader_; })) {
    ::kill(-leader_, signal);
  }
  for (const ProcessInfo& each : all) {
    if (each.group != leader_ && !each.zombie) {
      ::kill(each.id, signal);
    }
  }
}

void ProcessTree::reap() const {
  for (const ProcessInfo& each : members()) {
    if (each.zombie && each.id != leader_ && each.parent == ::getpid()) {
      ::waitpid(each.id, nullptr, WNOHANG);
    }
  }
}

std::optional<JobCgroup> JobCgroup::create() {
  const auto mount = cgroup_mount();
  const auto own = own_cgroup();
  if (!mount || !own) {
    return std::nullopt;
  }
  const std::string parent = *mount + *own + (own->ends_with('/') ? "" : "/");
  remove_what_was_left(parent);
  static int number = 0;  // several jobs one after another; started by one thread
  std::string folder = fmt::format("{}halfwatt-{}-{}", parent, ::getpid(), ++number);
  if (::mkdir(folder.c_str(), 0755) != 0) {
    return std::nullopt;
  }
  OwnedFile entrance(::open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!entrance) {
    ::rmdir(folder.c_str());
    return std::nullopt;
  }
  return JobCgroup(std::move(folder), std::move(entrance));
}

JobCgroup::JobCgroup(std::string folder, OwnedFile entrance)
    : folder_(std::move(folder)),
      entrance_(std::move(entrance)),
      killer_(::open((folder_ + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC)) {}

JobCgroup::JobCgroup(JobCgroup&& other) noexcept
    : folder_(std::move(other.folder_)),
      entrance_(std::move(other.entrance_)),
      killer_(std::move(other.killer_)) {
  other.folder_.clear();
}

JobCgroup::~JobCgroup() {
  if (!folder_.empty()) {
    ::rmdir(folder_.c_str());
  }
}

bool JobCgroup::kill() const { return killer_ && ::write(killer_.get(), "1", 1) == 1; }

bool JobCgroup::empty() const {
  std::ifstream events(folder_ + "/cgroup.events");
  std::string name;
  int value = 0;
  while (events >> name >> value) {
    if (name == "populated") {
      return value == 0;
    }
  }
  return true;
}

}  // namespace halfwatt
