#include "engine/data/picture_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/file.h"

namespace halfwatt {
namespace {

// More than any photo has; what is larger is refused before it is read.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

}  // namespace

bool is_picture_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  std::string ending(dot == name.npos ? "" : name.substr(dot));
  std::ranges::transform(ending, ending.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

Result<Image> read_picture(const std::filesystem::path& path,
                           const DecodePolicy& policy,
                           const PartOf& part) {
  const auto file = InputFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto bytes = file->whole(kMostBytes);
  if (!bytes) {
    return bytes.error();
  }
  return decode_image(*bytes, file->name(), policy, part);
}

std::string turned_remark(std::int64_t pictures) {
  return pictures == 1
             ? "1 picture was turned as its EXIF orientation says"
             : fmt::format("{} pictures were turned as their EXIF orientation says", pictures);
}

}  // namespace halfwatt
