#include "guard/guardian_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "guard/guardian.h"
#include "guard/own_children.h"
#include "guard/privilege.h"
#include "guard/throw_away.h"

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

CommandLine command_line(const std::string& program, GuardianProcess::Reach reach) {
  if (reach == GuardianProcess::Reach::real_cards && !may_set_limits() && ::geteuid() != 0 &&
      (sudo_asks_nothing() || let_sudo_ask())) {
    return {{"sudo", "-n", "--", real_path(program), std::string(kGuardianVerb)}, true};
  }
  return {{program, std::string(kGuardianVerb)}, false};
}

// Where halfwatt itself runs in a throw-away copy its guardian does not belong to that: it is
// not to be killed while it puts limits back.
std::vector<char*> environment_without_mark() {
  std::vector<char*> all;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with(kCopyVariable)) {
      all.push_back(*each);
    }
  }
  all.push_back(nullptr);
  return all;
}

// Its standard input is `socket`, since sudo closes all files above standard error. Returns an
// errno, or 0 and the process.
int spawn(CommandLine line, int socket, pid_t& pid) {
  std::vector<char*> arguments;
  for (std::string& each : line.words) {
    arguments.push_back(each.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  // A session of its own from the first moment on; but sudo needs the terminal's, by which it
  // knows that the password was given.
  const int session = line.by_sudo ? 0 : POSIX_SPAWN_SETSID;
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | session));
  const int failed = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(),
                                    environment_without_mark().data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

Result<GuardianProcess> GuardianProcess::start(const std::string& program, Reach reach) {
  const RootAgain root;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{ErrorKind::device,
                 fmt::format("no socket for the guardian: {}", std::strerror(errno))};
  }
  GuardianProcess started;
  started.socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  const CommandLine line = command_line(program, reach);
  int failed = 0;
  started.pid_ = start_own_child([&] {
    pid_t pid = -1;
    failed = spawn(line, theirs.number(), pid);
    return failed == 0 ? pid : -1;
  });
  if (failed != 0) {
    return Error{ErrorKind::device,
                 fmt::format("the guardian {}: {}", line.words.front(), std::strerror(failed))};
  }
  return started;
}

GuardianProcess::~GuardianProcess() {
  socket_.close();
  if (pid_ > 0) {
    end_of_own_child(pid_);
  }
}

}  // namespace halfwatt
