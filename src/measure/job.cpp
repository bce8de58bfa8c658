#include "measure/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "base/remark.h"
#include "guard/throw_away.h"

namespace halfwatt {
namespace {

constexpr Seconds kKillTakes{3};  // a process in the driver ends a little later
constexpr std::chrono::milliseconds kLook{10};

// How often the kernel killed for want of memory since it runs; since Linux 4.13.
std::optional<long> memory_kills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  long value = 0;
  while (file >> name >> value) {
    if (name == "oom_kill") {
      return value;
    }
  }
  return std::nullopt;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::string unlike_any_other() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

std::string text(const JobEnd& end) {
  if (end.status) {
    return fmt::format("ended with status {}", *end.status);
  }
  return fmt::format("was killed by {}{}", signal_name(end.killed.value_or(0)),
                     end.out_of_memory ? " because the machine ran out of memory" : "");
}

Result<OwnedFile> Job::open_output(SpawnOptions& how) {
  OwnedFile theirs;
  if (options_.output == JobOutput::terminal) {
    Result<PseudoTerminal> pair = open_pseudo_terminal();
    if (pair) {
      output_ = std::move(pair->ours);
      theirs = std::move(pair->theirs);
      how.terminal_is_output = true;
    } else {
      remarks_.push_back(pair.error().message + "; a pipe is used");
    }
  }
  if (!theirs) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return Error{ErrorKind::workload,
                   fmt::format("{}: no pipe for its output: {}", name(), std::strerror(errno))};
    }
    output_ = OwnedFile(ends[0]);
    theirs = OwnedFile(ends[1]);
  }
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  how.output = how.errors = theirs.get();
  return theirs;
}

Result<std::unique_ptr<Job>> Job::start(JobOptions options) {
  std::unique_ptr<Job> job(new Job(std::move(options)));
  const JobOptions& wanted = job->options_;
  SpawnOptions how;
  how.words = wanted.words;
  how.environment = wanted.environment;
  how.before_exec = wanted.before_exec;
  OwnedFile theirs;
  OwnedFile nothing;
  if (wanted.output == JobOutput::pass) {
    if (wanted.terminal != nullptr && wanted.terminal->is_ours()) {
      how.terminal_to_take = wanted.terminal->file();
    }
  } else {
    Result<OwnedFile> opened = job->open_output(how);
    if (!opened) {
      return opened.error();
    }
    theirs = std::move(*opened);
    nothing = OwnedFile(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    how.input = nothing.get();
    how.own_session = true;
  }
  if (const Result<void> done = adopt_orphans(); !done) {
    job->remarks_.push_back(done.error().message);
  }
  if (wanted.ends_with_us) {
    how.dies_with_us = true;
    if (auto cgroup = JobCgroup::create()) {
      job->cgroup_.emplace(std::move(*cgroup));
    }
    how.cgroup = job->cgroup_ ? job->cgroup_->entrance() : -1;
    const std::string value = unlike_any_other();
    how.environment.emplace_back(kCopyVariable, value);
    if (wanted.on_copy) {
      wanted.on_copy(fmt::format("{}={}", kCopyVariable, value),
                     job->cgroup_ ? job->cgroup_->killer() : -1);
    }
  }
  job->memory_kills_ = memory_kills();
  const Result<pid_t> child = spawn(how);
  if (!child) {
    if (how.terminal_to_take >= 0) {
      wanted.terminal->give(::getpgrp());  // the child that was none took it
    }
    return child.error();
  }
  job->leader_ = *child;
  job->tree_.set_leader(*child);
  if (how.terminal_to_take >= 0) {
    wanted.terminal->give(*child);
  }
  if (wanted.on_group) {
    wanted.on_group(*child);
  }
  return job;
}

Job::~Job() {
  if (leader_ <= 0) {
    return;
  }
  if (options_.ends_with_us) {
    if (const Result<void> done = end(); !done) {
      remark(done.error().message);
    }
  } else if (!end_ && options_.on_group) {
    options_.on_group(std::nullopt);
  }
}

void Job::take_end(int status, bool was_killed) {
  JobEnd end;
  if (was_killed) {
    end.killed = status;
    const std::optional<long> now = memory_kills();
    end.out_of_memory =
        status == SIGKILL && !killed_by_us_ && now && memory_kills_ && *now > *memory_kills_;
  } else {
    end.status = status;
  }
  end_ = end;
}

const std::optional<JobEnd>& Job::ended() {
  if (end_) {
    return end_;
  }
  // Looked at first and reaped later: until then nobody else can get the group's number.
  siginfo_t seen{};
  if (::waitid(P_PID, static_cast<id_t>(leader_), &seen, WEXITED | WNOHANG | WNOWAIT) != 0) {
    seen.si_pid = errno == ECHILD ? leader_ : 0;  // somebody else took the status
  }
  if (seen.si_pid == 0) {
    return end_;
  }
  if (options_.on_group) {
    options_.on_group(std::nullopt);
  }
  take_end(seen.si_status, seen.si_code == CLD_KILLED || seen.si_code == CLD_DUMPED);
  ::waitpid(leader_, nullptr, WNOHANG);
  return end_;
}

std::optional<int> Job::stopped() {
  siginfo_t seen{};
  if (end_ || ::waitid(P_PID, static_cast<id_t>(leader_), &seen, WSTOPPED | WNOHANG) != 0 ||
      seen.si_pid == 0) {
    return std::nullopt;
  }
  return seen.si_status;
}

void Job::signal(int number) const { ::kill(-leader_, number); }

void Job::stop() {
  stay_stopped();
  signal(SIGSTOP);
}

void Job::stay_stopped() {
  if (options_.on_group && !end_) {
    options_.on_group(std::nullopt);  // which continues it
    signal(SIGSTOP);
    stays_stopped_ = true;
  }
}

void Job::go_on() {
  if (stays_stopped_ && !end_) {
    options_.on_group(leader_);
    stays_stopped_ = false;
  }
  signal(SIGCONT);
}

bool Job::gone() {
  ended();
  tree_.reap();
  const std::vector<ProcessInfo> left = tree_.members();
  return end_ && (!cgroup_ || cgroup_->empty()) &&
         std::all_of(left.begin(), left.end(), [](const auto& each) { return each.zombie; });
}

bool Job::wait_until_gone(Seconds most) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(most.value());
  while (!gone()) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

Result<void> Job::end(Seconds grace) {
  if (gone()) {
    return {};
  }
  if (options_.on_group && !end_) {
    options_.on_group(std::nullopt);  // whoever stops it in turns must let go of it
  }
  tree_.send(SIGTERM);
  tree_.send(SIGCONT);  // a stopped process does not get the other
  if (wait_until_gone(grace)) {
    return {};
  }
  killed_by_us_ = true;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(kKillTakes.value());
  do {  // again and again: what forks in the meantime is seen the next time
    if (cgroup_) {
      cgroup_->kill();
    }
    tree_.send(SIGKILL);
    if (wait_until_gone(Seconds(0.05))) {
      return {};
    }
  } while (std::chrono::steady_clock::now() < until);
  std::string left;
  for (const ProcessInfo& each : tree_.members()) {
    if (!each.zombie) {
      left += fmt::format("{}{} ({})", left.empty() ? "" : ", ", each.id, each.name);
    }
  }
  return Error{ErrorKind::workload,
               fmt::format("{}: still running and not to be killed: process {}", name(), left)};
}

}  // namespace halfwatt
