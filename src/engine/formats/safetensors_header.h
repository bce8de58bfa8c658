#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/formats/safetensors_json.h"

namespace halfwatt {

/// Bytes of the number in front of the header.
inline constexpr std::size_t kSafetensorsPrefix = 8;

/// How many bytes of JSON follow the first eight of a file of `file_bytes`, of which `start` is
/// the beginning (eight bytes, or all there are). Errors (bad_input): not such a file, or one
/// that is shorter than its header.
Result<std::uint64_t> safetensors_header_bytes(std::string_view start,
                                               std::uint64_t file_bytes,
                                               const std::string& file);

/// The header `json` of `file`, in front of `data_bytes` bytes. Its tensors cover these without
/// a hole or an overlap, their names differ, and each is as long as its dtype and shape say.
/// Errors (bad_input): one line that names the file and the tensor, what was found and needed.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                   std::uint64_t data_bytes,
                                                   const std::string& file);

/// The start of a file with `header`, whose tensors lie one behind the other: length, JSON, and
/// spaces up to a multiple of eight bytes. Errors (bad_input, without the file's name): a name
/// twice or not in UTF-8, a header longer than the format has.
Result<std::string> safetensors_start(const SafetensorsHeader& header);

}  // namespace halfwatt
