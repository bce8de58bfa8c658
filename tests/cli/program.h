#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace halfwatt {

/// What a run of the built program left.
struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs `halfwatt` through a shell: `words` as one would type them behind its name. `before`
/// goes in front, such as "ulimit -f 1;".
Outcome run_program(const std::string& words, const std::string& before = "");

/// A folder of its own for one test, gone with it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// Path of a file in it, as text for a command line.
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and gives its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

/// To go in front: what is measured of this machine is kept in that folder.
std::string with_cache(const Folder& folder);
/// The same of the one folder that all tests share to which it does not matter when it was
/// measured; it lies in the build's.
std::string with_shared_cache();

std::string read_file(const std::filesystem::path& path);

}  // namespace halfwatt
