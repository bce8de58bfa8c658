#include "measure/attend.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace halfwatt {
namespace {

constexpr int kIdleMilliseconds = 200;
// All processes are looked at for it, which a job that starts many should not feel.
constexpr std::chrono::seconds kBetweenReaps{1};

sigset_t handed_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH,
                           SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM}) {
    sigaddset(&set, number);
  }
  return set;
}

[[noreturn]] void listen(pid_t parent, pid_t group, int tell) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(0);
  }
  ::setpgid(0, group);
  sigset_t set;
  sigfillset(&set);
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  while (true) {
    int number = 0;
    if (::sigwait(&set, &number) == 0) {
      (void)!::write(tell, "c", 1);
    }
  }
}

/// The state of one wait.
class Attendance {
 public:
  Attendance(Job& job, Terminal& terminal, HandedSignals& signals, InterruptListener& listener)
      : job_(&job), terminal_(&terminal), signals_(&signals), listener_(&listener) {
    if (const auto process = listener.process()) {
      job.tree().leave_out(*process);
    }
  }

  JobEnd wait(const std::function<void()>& idle) {
    while (true) {
      if (const auto& end = job_->ended()) {
        return *end;
      }
      if (const auto by = job_->stopped()) {
        job_stopped(*by);
      }
      std::array<pollfd, 2> files{pollfd{signals_->file(), POLLIN, 0},
                                  pollfd{listener_->file(), POLLIN, 0}};
      ::poll(files.data(), files.size(), kIdleMilliseconds);
      while (const auto number = signals_->next()) {
        hand_over(*number);
      }
      interrupts(listener_->count());  // the job has got them itself
      reap_orphans();
      idle();
    }
  }

 private:
  void interrupts(int count) {
    interrupts_ += count;
    if (count > 0 && interrupts_ >= 2) {
      job_->tree().send(SIGKILL);
    }
  }

  void hand_over(int number) {
    switch (number) {
      case SIGCHLD:
        children_ended_ = true;
        return;
      case SIGCONT:
        go_on();
        return;
      case SIGINT:
        job_->signal(SIGINT);
        interrupts(listener_->process() ? 0 : 1);  // which is in the group and hears this one
        return;
      default:
        job_->signal(number);
    }
  }

  void go_on() {
    if (terminal_->is_ours()) {
      terminal_->give(job_->group());
    }
    job_->go_on();
  }

  // What the job left behind when it ended its own children comes to us, and would fill the
  // table of processes over weeks.
  void reap_orphans() {
    const auto now = std::chrono::steady_clock::now();
    if (children_ended_ && now - reaped_ > kBetweenReaps) {
      job_->tree().reap();
      children_ended_ = false;
      reaped_ = now;
    }
  }

  // SIGSTOP is no job control: whoever sent it to the job will continue it.
  void job_stopped(int by) {
    if (by == SIGSTOP) {
      return;
    }
    if ((by == SIGTTIN || by == SIGTTOU) && terminal_->is_ours()) {
      go_on();
      return;
    }
    job_->stay_stopped();
    terminal_->take_back(true);
    stop_ourselves();
    go_on();
  }

  // Our shell sees us stopped as it would the job, with what else is in its pipeline. Where
  // there is no shell nothing happens, and the job goes on.
  void stop_ourselves() const {
    sigset_t stop;
    sigset_t before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    ::kill(terminal_->file() >= 0 ? 0 : ::getpid(), SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, &before);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  Job* job_;
  Terminal* terminal_;
  HandedSignals* signals_;
  InterruptListener* listener_;
  int interrupts_ = 0;
  bool children_ended_ = false;
  std::chrono::steady_clock::time_point reaped_;
};

}  // namespace

HandedSignals::HandedSignals() {
  const sigset_t set = handed_set();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  file_ = OwnedFile(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

HandedSignals::~HandedSignals() {
  while (next()) {  // what came too late for the job is not for us either
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> HandedSignals::next() {
  signalfd_siginfo info{};
  if (::read(file_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

InterruptListener::~InterruptListener() {
  if (process_) {
    ::kill(*process_, SIGKILL);
    while (::waitpid(*process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void InterruptListener::join(pid_t group) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return;
  }
  heard_ = OwnedFile(ends[0]);
  const OwnedFile tell(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    listen(parent, group, tell.get());
  }
  if (child > 0) {
    ::setpgid(child, group);  // at once: signals that come from now on wait for it
    process_ = child;
  }
}

int InterruptListener::count() {
  char byte = 0;
  int heard = 0;
  while (heard_ && ::read(heard_.get(), &byte, 1) == 1) {
    ++heard;
  }
  return heard;
}

JobEnd attend(Job& job,
              Terminal& terminal,
              HandedSignals& signals,
              InterruptListener& listener,
              const std::function<void()>& idle) {
  const JobEnd end = Attendance(job, terminal, signals, listener).wait(idle);
  terminal.take_back(end.killed.has_value());
  return end;
}

}  // namespace halfwatt
