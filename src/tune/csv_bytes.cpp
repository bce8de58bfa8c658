#include "tune/csv_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

namespace halfwatt {
namespace {

struct Signature {
  std::string_view bytes;
  std::string_view advice;
};

/// What people pass by mistake, by the first bytes of the file.
constexpr std::array kSignatures = {
    Signature{"\x1f\x8b", "is compressed (gzip); unpack it first: gunzip FILE"},
    Signature{"\x28\xb5\x2f\xfd", "is compressed (zstd); unpack it first: unzstd FILE"},
    Signature{"BZh", "is compressed (bzip2); unpack it first: bunzip2 FILE"},
    Signature{"\xfd"
              "7zXZ",
              "is compressed (xz); unpack it first: unxz FILE"},
    Signature{"PK\x03\x04", "is a zip file or a spreadsheet; export it as CSV"},
    Signature{"PAR1", "is a Parquet file; export it as CSV"},
    Signature{"SQLite format 3", "is a database; export the table as CSV"},
    Signature{"\xff\xfe", "is UTF-16 text; save it as UTF-8"},
    Signature{"\xfe\xff", "is UTF-16 text; save it as UTF-8"},
};

/// Length of the UTF-8 character that `text` begins with; 0 where it is none, or is a control
/// character that a terminal may obey (C0 but tab and line ends, DEL, C1).
/// RFC 3629, section 4.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&byte](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) {
    const bool line_or_tab = first == '\t' || first == '\n' || first == '\r';
    return line_or_tab || (first >= 0x20 && first != 0x7f) ? 1 : 0;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return follows(1, first == 0xc2 ? 0xa0 : 0x80) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    const bool fits = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return fits && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool fits = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return fits && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t most) {
  const std::string name = one_line(path.string());
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return bad_input(fmt::format("{}: is a folder; needed a file", name));
  }
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    return bad_input(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  std::string bytes;
  std::array<char, 65536> piece;
  std::size_t got = 0;
  while ((got = std::fread(piece.data(), 1, piece.size(), file.get())) > 0) {
    bytes.append(piece.data(), got);
    if (bytes.size() > most) {
      return bad_input(fmt::format("{}: larger than {} MiB", name, most >> 20U));
    }
  }
  if (std::ferror(file.get()) != 0) {
    return bad_input(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  return bytes;
}

Result<void> check_text(std::string_view bytes, std::string_view file) {
  const std::string name = one_line(file);
  for (const auto& [signature, advice] : kSignatures) {
    if (bytes.starts_with(signature)) {
      return bad_input(fmt::format("{}: {}", name, advice));
    }
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = character_length(bytes.substr(at));
    if (length == 0) {
      const auto line = 1 + std::count(bytes.begin(), bytes.begin() + std::ptrdiff_t(at), '\n');
      const auto byte = static_cast<unsigned char>(bytes[at]);
      return bad_input(
          fmt::format("{}:{}: byte 0x{:02x} is {}", name, line, byte,
                      byte < 0x80 ? "no text: a binary file?" : "not UTF-8; save it as UTF-8"));
    }
    at += length;
  }
  return {};
}

std::string one_line(std::string_view text, std::size_t most) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (std::max<std::size_t>(length, 1) > most - line.size()) {
      return line + "...";
    }
    const bool blank = length == 1 && static_cast<unsigned char>(text[at]) < 0x20;
    if (length == 0 || blank) {
      line += blank ? ' ' : '?';
      ++at;
    } else {
      line += text.substr(at, length);
      at += length;
    }
  }
  return line;
}

}  // namespace halfwatt
