#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace halfwatt {

/// Writes `text` to `path` so that a reader, even after a power cut, finds the old file or the
/// whole new one: into a temporary file beside it, flushed to the disk, then renamed. Follows
/// symbolic links; writes straight into what is no file (/dev/stdout, a pipe).
///
/// Errors (bad_input, nothing left behind): the folder is missing or read-only, the path is a
/// folder, the disk is full.
Result<void> write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace halfwatt
