#include "measure/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace halfwatt {
namespace {

/// All that the child needs, made before the fork: between fork and exec only calls that are
/// safe in a signal handler are allowed, since other threads may hold any lock.
struct Prepared {
  const SpawnOptions* options = nullptr;
  std::string path;
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::array<bool, NSIG> stays_ignored{};
  int most_files = 0;
  pid_t parent = 0;
  int report = -1;  ///< takes errno when exec failed
  int go = -1;      ///< a byte comes when the program may begin
};

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Error not_found(const std::string& word) {
  return {ErrorKind::no_such_command,
          fmt::format("{}: command not found; needed a program in PATH or a path to one",
                      word.empty() ? "''" : word)};
}

Error not_executable(const std::string& path, int number) {
  return {ErrorKind::not_executable,
          number == ENOEXEC
              ? fmt::format("{}: not a program: no known format and no #! line", path)
              : fmt::format("{}: cannot be executed: {}", path, std::strerror(number))};
}

// What execvp does, but before the fork.
Result<std::string> find_program(const std::string& word) {
  struct stat status {};
  if (word.find('/') != std::string::npos) {
    if (::stat(word.c_str(), &status) != 0) {
      return not_found(word);
    }
    return S_ISDIR(status.st_mode) ? Result<std::string>(not_executable(word, EISDIR)) : word;
  }
  const char* variable = std::getenv("PATH");
  const std::string all = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::string forbidden;
  for (std::size_t begin = 0; !word.empty() && begin <= all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    const std::string folder = all.substr(begin, end - begin);
    const std::string path = (folder.empty() ? "." : folder) + "/" + word;
    if (is_program(path)) {
      return path;
    }
    if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      forbidden = path;
    }
    begin = end + 1;
  }
  return forbidden.empty() ? not_found(word) : not_executable(forbidden, EACCES);
}

std::vector<std::string> environment_with(const Environment& added) {
  std::vector<std::string> all;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry = *each;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (std::none_of(added.begin(), added.end(),
                     [name](const auto& pair) { return pair.first == name; })) {
      all.emplace_back(entry);
    }
  }
  for (const auto& [name, value] : added) {
    all.push_back(name + "=" + value);
  }
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) {
    all.push_back(const_cast<char*>(word.c_str()));
  }
  all.push_back(nullptr);
  return all;
}

void set_signals(const Prepared& prepared) {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    action.sa_handler =
        prepared.stays_ignored[static_cast<std::size_t>(number)] ? SIG_IGN : SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
}

void set_files(const Prepared& prepared) {
  const SpawnOptions& options = *prepared.options;
  const std::array wanted = {options.input, options.output, options.errors};
  for (int number = 0; number < 3; ++number) {
    const int from = wanted[static_cast<std::size_t>(number)];
    if (from != number) {
      ::dup2(from, number);
    }
  }
  // Through the number: glibc has the function since 2.34 only.
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    for (int each = 3; each < prepared.most_files; ++each) {
      ::fcntl(each, F_SETFD, FD_CLOEXEC);
    }
  }
}

void set_group(const Prepared& prepared) {
  const SpawnOptions& options = *prepared.options;
  if (options.own_session) {
    ::setsid();
    if (options.terminal_is_output) {
      ::ioctl(options.output, TIOCSCTTY, 0);
    }
  } else {
    ::setpgid(0, 0);
    if (options.terminal_to_take >= 0) {
      // Here and not in the parent alone, so that no read of the terminal comes too early;
      // all signals are blocked, SIGTTOU among them.
      ::tcsetpgrp(options.terminal_to_take, ::getpid());
    }
  }
  if (options.cgroup >= 0 && ::write(options.cgroup, "0", 1) != 1) {
    // Not held by the cgroup then; the parent looks at what is in it.
  }
}

[[noreturn]] void become(const Prepared& prepared) {
  set_group(prepared);
  set_signals(prepared);
  set_files(prepared);
  if (prepared.options->dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != prepared.parent) {
      ::_exit(0);
    }
  }
  char byte = 0;
  if (prepared.options->before_exec && ::read(prepared.go, &byte, 1) != 1) {
    ::_exit(127);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(prepared.path.c_str(), prepared.argv.data(), prepared.envp.data());
  const int number = errno;
  (void)!::write(prepared.report, &number, sizeof number);
  ::_exit(127);
}

/// Blocks all signals, so that no handler of ours runs in the child.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// nohup, and a shell without job control, ignore signals for what they start; nothing in
// halfwatt ever ignores these three itself.
void note_ignored_signals(Prepared& prepared) {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT}) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    prepared.stays_ignored[static_cast<std::size_t>(number)] = now.sa_handler == SIG_IGN;
  }
}

int most_open_files() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0
             ? static_cast<int>(std::min(limit.rlim_cur, kEnough))
             : static_cast<int>(kEnough);
}

Error could_not(const std::string& program, const char* what) {
  return {ErrorKind::workload,
          fmt::format("{}: cannot be started: {}: {}", program, what, std::strerror(errno))};
}

// Until the program runs, or exec told why not.
Result<pid_t> await_exec(pid_t child, int report, const std::string& path) {
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(report, &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof number)) {
    return child;
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return number == ENOENT ? not_found(path) : not_executable(path, number);
}

}  // namespace

OwnedFile::OwnedFile(int descriptor) : descriptor_(descriptor) {
  if (descriptor >= 0 && descriptor <= 2) {
    descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    ::close(descriptor);
  }
}

OwnedFile& OwnedFile::operator=(OwnedFile&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

void OwnedFile::close() {
  if (descriptor_ >= 0) {
    ::close(std::exchange(descriptor_, -1));
  }
}

int OwnedFile::release() { return std::exchange(descriptor_, -1); }

Result<pid_t> spawn(const SpawnOptions& options) {
  const std::string& word = options.words.front();
  Result<std::string> path = find_program(word);
  if (!path) {
    return path.error();
  }
  Prepared prepared;
  prepared.options = &options;
  prepared.path = *path;
  prepared.environment = environment_with(options.environment);
  prepared.argv = pointers(options.words);
  prepared.envp = pointers(prepared.environment);
  prepared.most_files = most_open_files();
  prepared.parent = ::getpid();
  note_ignored_signals(prepared);
  std::array<int, 2> ends{};
  std::array<int, 2> start{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return could_not(word, "pipe");
  }
  const OwnedFile from_child(ends[0]);
  OwnedFile to_parent(ends[1]);
  if (::pipe2(start.data(), O_CLOEXEC) != 0) {
    return could_not(word, "pipe");
  }
  const OwnedFile from_parent(start[0]);
  const OwnedFile to_child(start[1]);
  prepared.go = from_parent.get();
  prepared.report = to_parent.get();
  pid_t child = -1;
  {
    const SignalsBlocked blocked;
    child = ::fork();
    if (child == 0) {
      become(prepared);
    }
  }
  if (child < 0) {
    return could_not(word, "fork");
  }
  to_parent.close();
  if (!options.own_session) {
    ::setpgid(child, child);  // whoever of the two comes first
  }
  if (options.before_exec) {
    options.before_exec(child);
    (void)!::write(to_child.get(), "g", 1);
  }
  return await_exec(child, from_child.get(), *path);
}

}  // namespace halfwatt
