// Real processes, and what is left of them.

#include "measure/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "device/nvml_processes.h"
#include "guard/own_children.h"
#include "measure/odd_job.h"

namespace halfwatt {
namespace {

std::unique_ptr<Job> start(std::vector<std::string> words, JobOutput output) {
  JobOptions options;
  options.words = std::move(words);
  options.output = output;
  options.ends_with_us = true;
  Result<std::unique_ptr<Job>> job = Job::start(std::move(options));
  EXPECT_TRUE(job) << job.error().message;
  return std::move(*job);
}

// All its output until it ends.
std::string output_of(Job& job) {
  std::string all;
  wait_for([&] {
    const bool over = job.ended().has_value();
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    while ((got = ::read(job.output(), buffer.data(), buffer.size())) > 0) {
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return over;
  });
  return all;
}

JobEnd end_of(Job& job) {
  EXPECT_TRUE(wait_for([&] { return job.ended().has_value(); }));
  return job.ended().value_or(JobEnd{});
}

Error start_error(std::vector<std::string> words) {
  JobOptions options;
  options.words = std::move(words);
  const Result<std::unique_ptr<Job>> job = Job::start(std::move(options));
  EXPECT_FALSE(job);
  return job ? Error{} : job.error();
}

TEST(Job, tells_the_status_that_the_command_ended_with) {
  for (const char* status : {"0", "1", "3", "255"}) {
    const auto job = start(odd_job({"exit", status}), JobOutput::pipe);
    EXPECT_EQ(end_of(*job).shell_status(), std::stoi(status));
  }
}

TEST(Job, tells_the_signal_that_killed_the_command) {
  const auto job = start(odd_job({"kill", "11"}), JobOutput::pipe);
  const JobEnd end = end_of(*job);
  EXPECT_EQ(end.killed, SIGSEGV);
  EXPECT_EQ(end.shell_status(), 139);
  EXPECT_EQ(text(end), "was killed by SIGSEGV");
}

TEST(Job, says_that_a_command_is_not_there) {
  for (const char* word : {"no-such-command-here", "/no/such/command"}) {
    const Error error = start_error({word});
    EXPECT_EQ(error.kind, ErrorKind::no_such_command);
    EXPECT_EQ(exit_code(error.kind), 127);
    EXPECT_EQ(error.message.find(word), 0U);
  }
}

TEST(Job, says_that_a_file_cannot_be_executed) {
  const TestFolder folder;
  std::ofstream(folder.path("plain")) << "just text\n";
  ::chmod(folder.path("plain").c_str(), 0644);
  std::ofstream(folder.path("formless")) << "just text\n";
  ::chmod(folder.path("formless").c_str(), 0755);
  for (const std::string& path :
       {folder.path("plain"), folder.path("formless"), folder.path().string()}) {
    const Error error = start_error({path});
    EXPECT_EQ(error.kind, ErrorKind::not_executable) << error.message;
    EXPECT_EQ(exit_code(error.kind), 126);
  }
}

TEST(Job, gives_the_command_clean_surroundings) {
  std::signal(SIGUSR1, SIG_IGN);
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  const int inherited = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  JobOptions options;
  options.words = odd_job({"surroundings"});
  options.output = JobOutput::pipe;
  options.environment = {{"ODD_JOB", "a=b c"}};
  Result<std::unique_ptr<Job>> job = Job::start(std::move(options));
  ASSERT_TRUE(job);
  EXPECT_EQ(output_of(**job),
            "blocked 0\nignored\nfiles 0\nleader 1\nterminal 0\nvalue a=b c\n");
  ::close(inherited);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(Job, keeps_a_hangup_ignored_that_was_ignored_when_we_were_started) {
  std::signal(SIGHUP, SIG_IGN);
  const auto job = start(odd_job({"surroundings"}), JobOutput::pipe);
  EXPECT_NE(output_of(*job).find("ignored 1\n"), std::string::npos);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(Job, gives_the_command_a_terminal_that_changes_no_byte) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) {
    GTEST_SKIP() << "no pseudo terminals here (/dev/pts is not mounted)";
  }
  ::close(terminal);
  const auto job = start(odd_job({"surroundings"}), JobOutput::terminal);
  EXPECT_NE(output_of(*job).find("\nterminal 1\n"), std::string::npos);
}

TEST(Job, hands_words_over_as_they_are) {
  const auto job =
      start({"printf", "%s|", "a b", "$HOME", "'; exit 3", "*", ""}, JobOutput::pipe);
  EXPECT_EQ(output_of(*job), "a b|$HOME|'; exit 3|*||");
}

TEST(Job, ends_a_command_that_ignores_sigterm) {
  const TestFolder folder;
  const auto job = start(odd_job({"ignore-term", folder.path("pid")}), JobOutput::pipe);
  const pid_t process = wait_for_pid(folder.path("pid"));
  ASSERT_TRUE(lives(process));
  EXPECT_TRUE(job->end(Seconds(0.05)));
  EXPECT_FALSE(lives(process));
  EXPECT_EQ(job->ended()->killed, SIGKILL);
  EXPECT_FALSE(job->ended()->out_of_memory);
}

TEST(Job, ends_what_left_its_group_its_session_and_its_parent) {
  const TestFolder folder;
  const auto job = start(odd_job({"fork-away", folder.path("pid")}), JobOutput::pipe);
  const pid_t daemon = wait_for_pid(folder.path("pid"));
  ASSERT_TRUE(lives(daemon));
  EXPECT_TRUE(job->end(Seconds(0.05)));
  EXPECT_FALSE(lives(daemon));
}

TEST(Job, is_the_descent_of_all_that_it_started) {
  const TestFolder folder;
  const auto job = start(odd_job({"fork-away", folder.path("pid")}), JobOutput::pipe);
  const pid_t daemon = wait_for_pid(folder.path("pid"));
  EXPECT_TRUE(descends_from(job->group(), ::getpid()));
  EXPECT_TRUE(descends_from(::getpid(), ::getpid()));
  // It has no parent of the job any more; it came to us.
  EXPECT_TRUE(wait_for([&] { return descends_from(daemon, ::getpid()); }));
  EXPECT_FALSE(descends_from(::getppid(), ::getpid()));
  EXPECT_FALSE(descends_from(1, ::getpid()));
  EXPECT_FALSE(descends_from(job->group(), daemon));
  EXPECT_TRUE(job->end(Seconds(0.05)));
  EXPECT_FALSE(lives(daemon));
}

TEST(Job, ends_a_stopped_command) {
  const TestFolder folder;
  const auto job = start({"sleep", "1000"}, JobOutput::pipe);
  job->signal(SIGSTOP);
  EXPECT_TRUE(job->end());
  EXPECT_EQ(job->ended()->killed, SIGTERM);
}

TEST(Job, ends_its_command_with_its_scope) {
  pid_t process = 0;
  {
    const auto job = start({"sleep", "1000"}, JobOutput::terminal);
    process = job->group();
    EXPECT_TRUE(lives(process));
  }
  EXPECT_FALSE(lives(process));
}

TEST(Job, leaves_other_children_alone) {
  const auto other = start({"sleep", "1000"}, JobOutput::pipe);
  const auto job = start({"sleep", "1000"}, JobOutput::pipe);
  EXPECT_TRUE(job->end());
  EXPECT_TRUE(lives(other->group()));
}

bool is_member(const Job& job, pid_t process) {
  const std::vector<ProcessInfo> all = job.tree().members();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& each) { return each.id == process; });
}

// Nothing in it tells what it is: as a guardian in the moments of its exec.
pid_t fork_a_sleeper() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(1);
  }
  return child;
}

TEST(Job, leaves_halfwatts_own_children_alone_whatever_they_run) {
  const auto job = start({HALFWATT_ODD_JOB, "steps", "1000000", "5"}, JobOutput::pipe);
  const pid_t own = start_own_child(fork_a_sleeper);
  const pid_t other = fork_a_sleeper();
  EXPECT_FALSE(is_member(*job, own));
  EXPECT_TRUE(is_member(*job, other)) << "an orphan of the job looks like that";
  EXPECT_TRUE(job->end());
  EXPECT_TRUE(lives(own)) << "it was killed with the job";
  EXPECT_FALSE(lives(other));
  ::kill(own, SIGKILL);
  end_of_own_child(own);
  EXPECT_TRUE(own_children().empty());
}

TEST(Job, knows_halfwatts_own_child_at_every_moment_of_its_start) {
  const auto job = start({HALFWATT_ODD_JOB, "steps", "1000000", "5"}, JobOutput::pipe);
  std::atomic<pid_t> forked = 0;
  std::thread watch([&] {  // as the thread that starts another guardian
    start_own_child([&] {
      const pid_t child = fork_a_sleeper();
      forked = child;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it is there, and unknown
      return child;
    });
  });
  ASSERT_TRUE(wait_for([&] { return forked != 0; }));
  EXPECT_FALSE(is_member(*job, forked));
  EXPECT_TRUE(job->end());
  EXPECT_TRUE(lives(forked));
  watch.join();
  ::kill(forked, SIGKILL);
  end_of_own_child(forked);
}

TEST(Job, leaves_a_guardian_alone_whose_sudo_died) {
  const auto job = start({HALFWATT_ODD_JOB, "steps", "1000000", "5"}, JobOutput::pipe);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t guardian = ::fork();
  if (guardian == 0) {
    ::dup2(pipe[0], STDIN_FILENO);
    ::execl("/bin/sh", "sh", "-c", "read line; exit 7", "__guardian", nullptr);
    ::_exit(1);
  }
  ASSERT_TRUE(wait_for([&] {
    std::ifstream file("/proc/" + std::to_string(guardian) + "/cmdline");
    const std::string words{std::istreambuf_iterator<char>(file), {}};
    return words.find("read line") != std::string::npos;
  }));
  EXPECT_FALSE(is_member(*job, guardian));
  EXPECT_TRUE(job->end());
  ::close(pipe[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(guardian, &status, 0), guardian);
  EXPECT_TRUE(WIFEXITED(status)) << "it was killed with the job";
}

TEST(Job, tells_its_group_before_the_number_is_free_again) {
  std::vector<std::optional<pid_t>> told;
  bool was_there = false;
  JobOptions options;
  options.words = odd_job({"exit", "0"});
  options.output = JobOutput::pipe;
  options.on_group = [&](std::optional<pid_t> group) {
    if (!group) {
      was_there = ::kill(*told.front(), 0) == 0;  // a zombie keeps the number
    }
    told.push_back(group);
  };
  const Result<std::unique_ptr<Job>> job = Job::start(std::move(options));
  ASSERT_TRUE(job);
  end_of(**job);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], (*job)->group());
  EXPECT_TRUE(was_there);
}

TEST(Job, leaves_a_real_job_running_when_nobody_waits_for_it) {
  JobOptions options;
  options.words = {"sleep", "1000"};
  pid_t process = 0;
  {
    const Result<std::unique_ptr<Job>> job = Job::start(std::move(options));
    ASSERT_TRUE(job);
    process = (*job)->group();
  }
  EXPECT_TRUE(lives(process));
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

TEST(JobCgroup, removes_what_a_killed_halfwatt_left) {
  auto left = JobCgroup::create();
  if (!left) {
    GTEST_SKIP() << "no cgroup of version 2 that may be written to";
  }
  const pid_t killed = ::fork();
  if (killed == 0) {
    auto cgroup = JobCgroup::create();
    const bool made = cgroup.has_value();
    // As by kill -9: nothing is removed.
    ::_exit(made ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(killed, &status, 0), killed);
  ASSERT_EQ(status, 0);
  const auto folder = [&](pid_t maker, int number) {
    const std::string own = left->folder();
    return own.substr(0, own.rfind('/')) + "/halfwatt-" + std::to_string(maker) + "-" +
           std::to_string(number);
  };
  const std::string mine = left->folder();
  const int number = std::stoi(mine.substr(mine.rfind('-') + 1)) + 1;
  ASSERT_TRUE(std::filesystem::exists(folder(killed, number)));
  const auto next = JobCgroup::create();
  EXPECT_FALSE(std::filesystem::exists(folder(killed, number)));
  EXPECT_TRUE(std::filesystem::exists(mine)) << "whose halfwatt lives";
}

TEST(JobCgroup, kills_everything_in_it) {
  const auto cgroup = JobCgroup::create();
  if (!cgroup) {
    GTEST_SKIP() << "no cgroup of version 2 that may be written to";
  }
  SpawnOptions how;
  how.words = {"sleep", "1000"};
  how.cgroup = cgroup->entrance();
  const Result<pid_t> child = spawn(how);
  ASSERT_TRUE(child);
  EXPECT_FALSE(cgroup->empty());
  if (!cgroup->kill()) {
    ::kill(*child, SIGKILL);
  }
  EXPECT_TRUE(wait_for([&] { return !lives(*child) && cgroup->empty(); }));
  ::waitpid(*child, nullptr, 0);
}

}  // namespace
}  // namespace halfwatt
