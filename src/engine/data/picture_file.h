#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/data/decode.h"

namespace halfwatt {

/// Whether a file of that name is taken for a picture: .jpg, .jpeg or .png, in any case.
bool is_picture_name(std::string_view name);

/// Reads and decodes a picture. Errors (bad_input): it cannot be read, it is larger than any
/// picture (nothing is allocated then), or as decode_image().
Result<Image> read_picture(const std::filesystem::path& path,
                           const DecodePolicy& policy,
                           const PartOf& part = {});

/// What is to be told of pictures that were turned; for one or more of them.
std::string turned_remark(std::int64_t pictures);

}  // namespace halfwatt
