#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace halfwatt {

/// How many bytes this process can still take: what the kernel calls available, or less where
/// the limit of a cgroup (v2's memory.max, v1's memory.limit_in_bytes, its own or one above)
/// leaves less. Cached files that nobody uses count as free, as they make room. nullopt if
/// /proc says nothing.
std::optional<std::int64_t> available_memory(const std::filesystem::path& root = "/");

}  // namespace halfwatt
