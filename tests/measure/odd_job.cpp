#include "measure/odd_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "measure/process_tree.h"

namespace halfwatt {

std::vector<std::string> odd_job(std::vector<std::string> words) {
  words.insert(words.begin(), HALFWATT_ODD_JOB);
  return words;
}

TestFolder::TestFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "halfwatt-test-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool wait_for(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

pid_t wait_for_pid(const std::string& path) {
  pid_t process = 0;
  wait_for([&] { return static_cast<bool>(std::ifstream(path) >> process); });
  return process;
}

bool lives(pid_t process) {
  const std::vector<ProcessInfo> all = all_processes();
  return std::any_of(all.begin(), all.end(), [process](const ProcessInfo& each) {
    return each.id == process && !each.zombie;
  });
}

}  // namespace halfwatt
