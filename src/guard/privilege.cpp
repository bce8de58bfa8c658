#include "guard/privilege.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "guard/own_children.h"

namespace halfwatt {
namespace {

constexpr unsigned kSysAdmin = 21;  // CAP_SYS_ADMIN of linux/capability.h

std::optional<unsigned> number_in(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    return std::nullopt;
  }
  unsigned value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

enum class Errors { shown, hidden };

// Known as ours: ended with a job's processes it would be a no of sudo's.
bool runs_well(const char* const* words, Errors errors) {
  const pid_t child = start_own_child([words, errors] {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    if (errors == Errors::hidden) {
      ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    pid_t pid = -1;
    const int failed =
        ::posix_spawnp(&pid, words[0], &actions, nullptr, const_cast<char**>(words), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? pid : -1;
  });
  return child > 0 && end_of_own_child(child) == 0;
}

}  // namespace

bool may_set_limits() {
  std::ifstream in("/proc/thread-self/status");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("CapEff:")) {
      const std::uint64_t effective = std::strtoull(line.c_str() + 7, nullptr, 16);
      return (effective >> kSysAdmin & 1U) != 0;
    }
  }
  return ::geteuid() == 0;
}

std::string ways_to_set_limits() {
  return "run it by sudo, give the container CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN), "
         "or "
         "use --measure-only";
}

std::optional<CallingUser> calling_user() {
  const auto user = number_in("SUDO_UID");
  const auto group = number_in("SUDO_GID");
  if (::getuid() != 0 || !user || !group || *user == 0) {
    return std::nullopt;
  }
  CallingUser caller{*user, *group, "", "/"};
  if (const passwd* entry = ::getpwuid(*user)) {
    caller.name = entry->pw_name;
    caller.home = entry->pw_dir;
  }
  return caller;
}

Result<void> drop_privileges() {
  const auto caller = calling_user();
  if (!caller) {
    return {};
  }
  const bool groups = caller->name.empty()
                          ? ::setgroups(1, &caller->group) == 0
                          : ::initgroups(caller->name.c_str(), caller->group) == 0;
  // Root stays as the saved user alone: exec() forgets it, RootAgain needs it.
  if (!groups || ::setresgid(caller->group, caller->group, caller->group) != 0 ||
      ::setresuid(caller->user, caller->user, 0) != 0) {
    return Error{ErrorKind::device,
                 fmt::format("cannot go on as user {}, who called sudo: {}; start the command "
                             "as root itself, without sudo, if it shall run as root",
                             caller->user, std::strerror(errno))};
  }
  ::setenv("HOME", caller->home.c_str(), 1);
  if (!caller->name.empty()) {
    ::setenv("USER", caller->name.c_str(), 1);
    ::setenv("LOGNAME", caller->name.c_str(), 1);
  }
  return {};
}

bool sudo_asks_nothing() {
  const char* const words[] = {"sudo", "-n", "true", nullptr};
  return runs_well(words, Errors::hidden);  // that a password is required is no news yet
}

bool let_sudo_ask() {
  const char* const words[] = {"sudo", "-v", nullptr};
  return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0 &&
         runs_well(words, Errors::shown);
}

// The library's setresuid() would change every thread; the system call changes this one.
RootAgain::RootAgain() : user_(::geteuid()) {
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  if (::getresuid(&real, &effective, &saved) == 0 && effective != 0 && saved == 0) {
    raised_ =
        ::syscall(SYS_setresuid, -1, 0, -1) == 0 && ::syscall(SYS_setresuid, 0, 0, 0) == 0;
  }
}

RootAgain::~RootAgain() {
  if (raised_ && ::syscall(SYS_setresuid, user_, user_, 0) != 0) {
    std::abort();  // better none at all than one that stays root
  }
}

}  // namespace halfwatt
