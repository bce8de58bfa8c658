#include "engine/formats/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <vector>

#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

// The reference implementation reads no longer one (MAX_HEADER_SIZE of its tensor.rs).
constexpr std::uint64_t kLongestHeader = 100'000'000;

struct Signature {
  std::string_view bytes;
  std::string_view advice;
};

/// What people pass by mistake.
constexpr std::array kSignatures = {
    Signature{"PK\x03\x04", "a zip file, as torch.save writes; save it with safetensors"},
    Signature{"\x80\x02", "a Python pickle, as torch.save writes; save it with safetensors"},
    Signature{"version ", "a pointer of git-lfs; fetch the file itself: git lfs pull"},
};

// A name that two tensors have; nullopt if there is none.
std::optional<std::string_view> name_twice(const std::vector<StoredTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  std::transform(tensors.begin(), tensors.end(), std::back_inserter(names),
                 [](const StoredTensor& each) { return std::string_view(each.name); });
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? std::nullopt : std::optional(*twice);
}

// Why tensors in the order of their bytes do not cover the data; empty if they do.
std::string gap(const std::vector<StoredTensor>& tensors, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const StoredTensor& each : tensors) {
    if (each.offset != at) {
      return fmt::format(
          "tensor {} begins at byte {} of the data, the one before it ends at {}"
          "; needed no {}",
          quoted_name(each.name), each.offset, at, each.offset > at ? "hole" : "overlap");
    }
    at = each.end();
  }
  return at == data_bytes ? ""
                          : fmt::format(
                                "the tensors end at byte {} of the data, the file at {}"
                                "; needed the same",
                                at, data_bytes);
}

}  // namespace

Result<std::uint64_t> safetensors_header_bytes(std::string_view start,
                                               std::uint64_t file_bytes,
                                               const std::string& file) {
  for (const Signature& each : kSignatures) {
    if (start.starts_with(each.bytes)) {
      return bad_input(fmt::format("{}: {}", file, each.advice));
    }
  }
  if (start.size() < kSafetensorsPrefix) {
    return bad_input(
        fmt::format("{}: has {} bytes; a safetensors file has at least 10", file, file_bytes));
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = kSafetensorsPrefix; i > 0; --i) {
    bytes = bytes << 8U | static_cast<unsigned char>(start[i - 1]);
  }
  if (bytes > kLongestHeader) {
    return bad_input(fmt::format(
        "{}: no safetensors file: its header would be {} bytes long; needed at most {}", file,
        bytes, kLongestHeader));
  }
  if (bytes > file_bytes - kSafetensorsPrefix) {
    return bad_input(fmt::format("{}: ends in its header, which is {} bytes long; {} are there",
                                 file, bytes, file_bytes - kSafetensorsPrefix));
  }
  return bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                   std::uint64_t data_bytes,
                                                   const std::string& file) {
  Result<SafetensorsHeader> header = read_safetensors_json(json);
  if (!header) {
    return bad_input(fmt::format("{}: {}", file, header.error().message));
  }
  std::vector<StoredTensor>& tensors = header->tensors;
  if (const auto twice = name_twice(tensors)) {
    return bad_input(
        fmt::format("{}: tensor {}: there twice; needed once", file, quoted_name(*twice)));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor& one, const StoredTensor& other) {
              return std::make_tuple(one.offset, one.end(), std::string_view(one.name)) <
                     std::make_tuple(other.offset, other.end(), std::string_view(other.name));
            });
  if (const std::string why = gap(tensors, data_bytes); !why.empty()) {
    return bad_input(fmt::format("{}: {}", file, why));
  }
  return header;
}

Result<std::string> safetensors_start(const SafetensorsHeader& header) {
  if (const auto twice = name_twice(header.tensors)) {
    return bad_input(fmt::format("tensor {}: there twice; needed once", quoted_name(*twice)));
  }
  std::string text = "{";
  try {
    if (!header.metadata.empty()) {
      text += "\"__metadata__\":" + nlohmann::json(header.metadata).dump();
    }
    for (const StoredTensor& each : header.tensors) {
      if (each.name == "__metadata__") {
        return bad_input("tensor \"__metadata__\": the format has this name for itself");
      }
      text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          text.size() > 1 ? "," : "", nlohmann::json(each.name).dump(),
                          safetensors_name(each.type.dtype),
                          fmt::join(each.type.shape.extents(), ","), each.offset, each.end());
    }
  } catch (const nlohmann::json::type_error&) {
    return bad_input("a name or the metadata is not in UTF-8");
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kLongestHeader) {
    return bad_input(fmt::format("the header would be {} bytes long; needed at most {}",
                                 text.size(), kLongestHeader));
  }
  std::string start;
  for (std::size_t i = 0; i < kSafetensorsPrefix; ++i) {
    start += static_cast<char>(text.size() >> 8 * i & 0xffU);
  }
  return start + text;
}

}  // namespace halfwatt
