#include "engine/train/cut_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/formats/file.h"
#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

Error cannot(const fs::path& path, std::string_view what) {
  return bad_input(fmt::format("{}: {}: {}", shown(path), what, std::strerror(errno)));
}

Result<void> shorten(const fs::path& path, std::uint64_t bytes) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0 || ::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0 ||
      ::fsync(file.number()) != 0) {
    return cannot(path, "cannot be shortened");
  }
  return {};
}

}  // namespace

Result<std::int64_t> cut_log(const fs::path& path, std::int64_t attempt) {
  std::error_code error;
  if (!fs::exists(path, error) && !error) {
    return std::int64_t{0};
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return cannot(path, "cannot be opened");
  }
  std::uint64_t kept = 0;
  std::int64_t number = 0;
  std::int64_t gone = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const bool is_whole = !in.eof();  // its end of line is there
    if (gone > 0) {
      ++gone;
      continue;
    }
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() && is_whole && in.peek() != std::ifstream::traits_type::eof()) {
      return bad_input(fmt::format("{}: line {} is no JSON object; needed a log of a training",
                                   shown(path), number));
    }
    const bool is_later = json.is_object() && json.contains("attempt") &&
                          json["attempt"].is_number() && json["attempt"] > attempt;
    if (!json.is_object() || !is_whole || is_later) {
      ++gone;
      continue;
    }
    kept += line.size() + 1;
  }
  if (in.bad()) {
    return cannot(path, "cannot be read");
  }
  if (gone > 0) {
    if (const auto done = shorten(path, kept); !done) {
      return done.error();
    }
  }
  return gone;
}

}  // namespace halfwatt
