#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace halfwatt {

/// `text` between quotation marks as JSON writes it, in printable ASCII; of a long one, its
/// beginning and "...".
std::string quoted_name(std::string_view text);

/// `path` as messages name it: as it is, unless it holds control characters; quoted then.
std::string shown(const std::filesystem::path& path);

}  // namespace halfwatt
