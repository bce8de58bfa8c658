#include "base/cache_folder.h"

#include <cstdlib>

namespace halfwatt {

std::optional<std::filesystem::path> cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache != nullptr && std::filesystem::path(cache).is_absolute()) {
    return std::filesystem::path(cache) / "halfwatt";
  }
  if (home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache" / "halfwatt";
  }
  return std::nullopt;
}

}  // namespace halfwatt
