#pragma once

#include <filesystem>
#include <optional>

namespace halfwatt {

/// Where what can be measured again is kept: $XDG_CACHE_HOME/halfwatt, or ~/.cache/halfwatt;
/// nullopt where the user has neither.
std::optional<std::filesystem::path> cache_folder();

}  // namespace halfwatt
