#include "device/group_time.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

namespace halfwatt {
namespace {

constexpr double kNanoseconds = 1e-9;

std::optional<Seconds> time_of(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) {
    return std::nullopt;  // it ended
  }
  return Seconds(static_cast<double>(time.tv_sec) +
                 static_cast<double>(time.tv_nsec) * kNanoseconds);
}

/// Calls `use` with every name in a folder of /proc that is a number.
template <class Use>
void for_each_number(const std::string& path, Use use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder) {
    return;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0) {
      use(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
    }
  }
}

}  // namespace

GroupTime::GroupTime(pid_t group) : group_(group) {
  look();
  first_look_ = false;
}

Seconds GroupTime::run() {
  for (Member& member : members_) {
    const std::optional<Seconds> now = time_of(member.clock);
    if (now && *now > member.run) {
      run_ += *now - member.run;
      member.run = *now;
    }
  }
  return run_;
}

void GroupTime::look() {
  (void)run();
  for (Member& member : members_) {
    member.present = false;
  }
  for_each_number("/proc", [this](pid_t process) {
    if (::getpgid(process) == group_) {
      find(process);
    }
  });
  std::erase_if(members_, [](const Member& each) { return !each.present; });
  for (Member& member : members_) {
    add_waits(member);
  }
}

void GroupTime::find(pid_t process) {
  const auto known = std::find_if(members_.begin(), members_.end(),
                                  [process](const Member& each) { return each.id == process; });
  if (known != members_.end()) {
    known->present = true;
    return;
  }
  Member member{process, {}, {}, {}, true};
  if (::clock_getcpuclockid(process, &member.clock) != 0) {
    return;
  }
  // Whoever is new was born, or joined as it was born, since the last look: all it used counts.
  const Seconds used = time_of(member.clock).value_or(Seconds(0));
  member.run = used;
  if (!first_look_) {
    run_ += used;
  }
  members_.push_back(member);
}

void GroupTime::add_waits(Member& member) {
  const std::string folder = "/proc/" + std::to_string(member.id) + "/task";
  Seconds sum;
  for_each_number(folder, [&](pid_t thread) {
    std::ifstream file(folder + '/' + std::to_string(thread) + "/schedstat");
    double run_ns = 0;
    double wait_ns = 0;
    if (file >> run_ns >> wait_ns) {
      sum += Seconds(wait_ns * kNanoseconds);
    }
  });
  // A thread that ended takes its waits with it: the sum may fall.
  if (!first_look_ && sum > member.waited) {
    waited_ += sum - member.waited;
  }
  member.waited = sum;
}

}  // namespace halfwatt
