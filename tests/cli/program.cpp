#include "cli/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace halfwatt {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Outcome run_program(const std::string& words, const std::string& before) {
  const Folder folder;
  const char* program = std::getenv("HALFWATT_PROGRAM");
  EXPECT_NE(program, nullptr) << "ctest sets HALFWATT_PROGRAM to the built program";
  const std::string line = before + " '" + (program != nullptr ? program : "halfwatt") + "' " +
                           words + " >'" + folder.path("out") + "' 2>'" + folder.path("err") +
                           "'";
  const int status = std::system(line.c_str());
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(folder.path("out"));
  outcome.err = read_file(folder.path("err"));
  return outcome;
}

std::string with_cache(const Folder& folder) {
  return "XDG_CACHE_HOME='" + folder.path("") + "' ";
}

std::string with_shared_cache() {
  const char* program = std::getenv("HALFWATT_PROGRAM");
  EXPECT_NE(program, nullptr);
  const auto build = std::filesystem::absolute(program).parent_path().parent_path();
  return "XDG_CACHE_HOME='" + (build / "cache-of-tests").string() + "' ";
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "halfwatt-test-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

}  // namespace halfwatt
