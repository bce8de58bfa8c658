#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace halfwatt {

/// The words that run tests/measure/jobs/odd_job.cpp.
std::vector<std::string> odd_job(std::vector<std::string> words);

/// A folder of its own for one test, gone with it.
class TestFolder {
 public:
  TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder();
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Waits until `done` says so; false after 20 seconds.
bool wait_for(const std::function<bool()>& done);
/// The number in a file that a process is to write; 0 if it never comes.
pid_t wait_for_pid(const std::string& path);
/// Whether a process of that number lives, zombies not counted.
bool lives(pid_t process);

}  // namespace halfwatt
