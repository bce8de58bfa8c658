#include "cli/scratch_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace halfwatt {

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::make() {
  std::error_code failed;
  const auto parent = std::filesystem::temp_directory_path(failed);
  std::string path = (failed ? "/tmp" : parent.string()) + "/halfwatt-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return bad_input(
        fmt::format("{}: no folder can be made there; TMPDIR names another", path));
  }
  return std::make_unique<ScratchFolder>(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace halfwatt
