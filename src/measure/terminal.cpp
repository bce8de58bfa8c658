#include "measure/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace halfwatt {
namespace {

/// Whoever is not in front and writes to its terminal is stopped, unless it blocks SIGTTOU.
class StoppingBlocked {
 public:
  StoppingBlocked() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  StoppingBlocked(const StoppingBlocked&) = delete;
  StoppingBlocked& operator=(const StoppingBlocked&) = delete;
  ~StoppingBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Terminal::Terminal() : file_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {
  termios now{};
  if (file_ && ::tcgetattr(file_.get(), &now) == 0) {
    modes_ = now;
  }
}

Terminal::~Terminal() {
  if (given_) {
    take_back(false);
  }
}

bool Terminal::is_ours() const { return file_ && ::tcgetpgrp(file_.get()) == ::getpgrp(); }

void Terminal::give(pid_t group) {
  const StoppingBlocked blocked;
  given_ = ::tcsetpgrp(file_.get(), group) == 0;
}

void Terminal::take_back(bool restore_modes) {
  if (!file_) {
    return;
  }
  const StoppingBlocked blocked;
  if (given_) {
    ::tcsetpgrp(file_.get(), ::getpgrp());
    given_ = false;
  }
  if (restore_modes && modes_ && is_ours()) {
    ::tcsetattr(file_.get(), TCSADRAIN, &*modes_);
  }
}

Result<PseudoTerminal> open_pseudo_terminal() {
  PseudoTerminal pair;
  std::array<char, 64> name{};
  pair.ours = OwnedFile(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (pair.ours && ::grantpt(pair.ours.get()) == 0 && ::unlockpt(pair.ours.get()) == 0 &&
      ::ptsname_r(pair.ours.get(), name.data(), name.size()) == 0) {
    pair.theirs = OwnedFile(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  if (!pair.theirs) {
    return Error{
        ErrorKind::workload,
        fmt::format("no pseudo terminal for the command's output: {}", std::strerror(errno))};
  }
  termios modes{};
  if (::tcgetattr(pair.theirs.get(), &modes) == 0) {
    ::cfmakeraw(&modes);
    modes.c_lflag |= ISIG;  // nothing is ever typed, but programs look at it
    ::tcsetattr(pair.theirs.get(), TCSANOW, &modes);
  }
  winsize size{};
  size.ws_row = 24;  // bars adapt to the width; one that is cut off loses its figures
  size.ws_col = 120;
  ::ioctl(pair.theirs.get(), TIOCSWINSZ, &size);
  return pair;
}

}  // namespace halfwatt
