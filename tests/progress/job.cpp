#include "progress/job.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace halfwatt {

Job::Job(const std::vector<std::string>& words, const Environment& environment) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  id_ = ::fork();
  if (id_ == 0) {
    for (const auto& [name, value] : environment) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
}

Job::~Job() {
  if (id_ > 0) {
    kill(SIGKILL);
    wait();
  }
}

int Job::wait() {
  int status = 0;
  EXPECT_EQ(::waitpid(id_, &status, 0), id_);
  id_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Job::kill(int signal) const { ::kill(id_, signal); }

std::string beside_halfwatt(const std::string& name) {
  const char* program = std::getenv("HALFWATT_PROGRAM");
  EXPECT_NE(program, nullptr) << "ctest sets HALFWATT_PROGRAM to the built program";
  return (std::filesystem::path(program != nullptr ? program : "").parent_path() / name)
      .string();
}

int write_steps(const std::string& what, int steps, const Environment& environment) {
  return Job({beside_halfwatt("progress_writer"), what, std::to_string(steps)}, environment)
      .wait();
}

}  // namespace halfwatt
