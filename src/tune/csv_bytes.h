#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace halfwatt {

/// Reads `path` whole, or refuses it: absent, a folder, unreadable, or more than `most` bytes.
Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t most);

/// Refuses what is not UTF-8 text without control characters, so that nothing read here can
/// reach a terminal or a page as anything but text. Says what the bytes look like instead
/// (gzip, a spreadsheet, UTF-16, binary) and, where one byte is to blame, its line.
/// `file`: how messages name it.
Result<void> check_text(std::string_view bytes, std::string_view file);

/// `text` as messages show it: on one line, without control characters, and cut off after
/// about `most` bytes.
std::string one_line(std::string_view text, std::size_t most = std::string_view::npos);

}  // namespace halfwatt
