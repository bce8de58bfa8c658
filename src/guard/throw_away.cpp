#include "guard/throw_away.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "base/clock.h"

namespace halfwatt {
namespace {

constexpr Seconds kGrace{5};        // between SIGTERM and SIGKILL, as halfwatt itself gives
constexpr Seconds kPersistence{3};  // for what forks while it is killed
constexpr Seconds kLook{0.05};

bool has_mark(const std::string& folder, const std::string& mark) {
  std::ifstream file(folder + "/environ", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const std::string whole = mark + '\0';
  return all.starts_with(whole) || all.find('\0' + whole) != std::string::npos;
}

// Opened before the mark is read: a number that becomes another process's in between names the
// dead one here, which no signal reaches.
std::vector<Descriptor> marked(const std::string& mark, uid_t user) {
  std::vector<Descriptor> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), &::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [stopped, error] = std::from_chars(entry->d_name, end, pid);
    if (error != std::errc() || stopped != end) {
      continue;
    }
    Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const std::string path = std::string("/proc/") + entry->d_name;
    struct stat status {};
    const bool may = process.is_open() && ::stat(path.c_str(), &status) == 0 &&
                     (user == 0 || status.st_uid == user);
    if (may && has_mark(path, mark)) {
      found.push_back(std::move(process));
    }
  }
  return found;
}

void send(const std::vector<Descriptor>& processes, int signal) {
  for (const Descriptor& each : processes) {
    ::syscall(SYS_pidfd_send_signal, each.number(), signal, nullptr, 0);
  }
}

}  // namespace

void end_throw_away(const ThrowAway& copy, uid_t user) {
  if (copy.mark.empty()) {
    return;
  }
  SteadyClock clock;
  std::vector<Descriptor> left = marked(copy.mark, user);
  send(left, SIGTERM);
  send(left, SIGCONT);  // a stopped process does not get the other
  const Seconds grace = clock.now() + kGrace;
  while (!left.empty() && clock.now() < grace) {
    clock.sleep_until(clock.now() + kLook);
    left = marked(copy.mark, user);
  }
  if (copy.cgroup_kill.is_open()) {
    (void)!::write(copy.cgroup_kill.number(), "1", 1);
  }
  const Seconds end = clock.now() + kPersistence;
  while (!(left = marked(copy.mark, user)).empty() && clock.now() < end) {
    send(left, SIGKILL);
    clock.sleep_until(clock.now() + kLook);
  }
}

}  // namespace halfwatt
