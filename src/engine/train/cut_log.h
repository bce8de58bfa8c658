#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace halfwatt {

/// Shortens a log of JSON Lines to what was written up to step `attempt`, so that a training
/// that goes on from a checkpoint of it tells nothing twice: from the first line on whose
/// `attempt` is larger, and of a line that a kill cut short. A line without that key belongs to
/// the one before it. Returns how many lines are gone; no file has none. Errors (bad_input): a
/// line before the last is no JSON object; the file cannot be read or shortened.
Result<std::int64_t> cut_log(const std::filesystem::path& path, std::int64_t attempt);

}  // namespace halfwatt
