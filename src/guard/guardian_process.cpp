#include "guard/guardian_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "guard/controls.h"
#include "guard/guardian.h"
#include "guard/privilege.h"

namespace halfwatt {
namespace {

// sudo would take /proc/self for itself.
std::string real_path(const std::string& program) {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink(program, ignored);
  return path.empty() ? program : path.string();
}

struct CommandLine {
  std::vector<std::string> words;
  bool by_sudo = false;
};

CommandLine command_line(const std::string& program, const std::vector<std::string>& cards) {
  const bool real = std::any_of(cards.begin(), cards.end(), is_shared_card);
  if (real && !may_set_limits() && ::geteuid() != 0 &&
      (sudo_asks_nothing() || let_sudo_ask())) {
    return {{"sudo", "-n", "--", real_path(program), std::string(kGuardianVerb)}, true};
  }
  return {{program, std::string(kGuardianVerb)}, false};
}

}  // namespace

Result<GuardianProcess> start_guardian(const std::string& program,
                                       const std::vector<std::string>& cards) {
  const RootAgain root;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{ErrorKind::device,
                 fmt::format("no socket for the guardian: {}", std::strerror(errno))};
  }
  GuardianProcess started{-1, Descriptor(ends[0])};
  const Descriptor theirs(ends[1]);
  CommandLine line = command_line(program, cards);
  std::vector<char*> arguments;
  for (std::string& each : line.words) {
    arguments.push_back(each.data());
  }
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  // The socket is standard input: sudo closes all files above standard error.
  ::posix_spawn_file_actions_adddup2(&actions, theirs.number(), STDIN_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  // A session of its own from the first moment on; but sudo needs the terminal's, by which it
  // knows that the password was given.
  const int session = line.by_sudo ? 0 : POSIX_SPAWN_SETSID;
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | session));
  const int failed = ::posix_spawnp(&started.pid, arguments[0], &actions, &attributes,
                                    arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{ErrorKind::device,
                 fmt::format("the guardian {}: {}", line.words.front(), std::strerror(failed))};
  }
  return started;
}

}  // namespace halfwatt
