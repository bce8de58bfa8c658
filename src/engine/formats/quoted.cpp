#include "engine/formats/quoted.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace halfwatt {

std::string quoted_name(std::string_view text) {
  using Json = nlohmann::json;
  constexpr std::size_t kLongest = 100;
  const bool whole = text.size() <= kLongest;
  const std::string json =
      Json(text.substr(0, kLongest)).dump(-1, ' ', true, Json::error_handler_t::replace);
  return whole ? json : json + "...";
}

std::string shown(const std::filesystem::path& path) {
  const std::string name = path.string();
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  });
  return plain ? name : quoted_name(name);
}

}  // namespace halfwatt
