#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "engine/data/decode.h"
#include "support/pictures.h"

namespace halfwatt {

/// Why decode_image() refuses `file`, after its name "f"; "" if it does not.
inline std::string refusal(const std::string& file, const DecodePolicy& policy = {}) {
  const auto image = decode_image(bytes_of(file), "f", policy);
  if (image) {
    return "";
  }
  const std::string& message = image.error().message;
  EXPECT_TRUE(message.starts_with("f: ")) << message;
  EXPECT_NE(message.find("needs"), std::string::npos) << message;
  EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  return message.substr(3);
}

/// How many bytes of addresses this program has had at once; unknown where /proc is not there.
inline std::optional<std::int64_t> peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (std::int64_t kib = 0; word == "VmPeak:" && status >> kib) {
      return kib * 1024;
    }
  }
  return std::nullopt;
}

/// As refusal(), and it takes no more than a few megabytes to come to it.
inline std::string cheap_refusal(const std::string& file) {
  const auto before = peak_bytes();
  std::string why = refusal(file);
  if (before) {
    EXPECT_LT(*peak_bytes() - *before, 32 << 20);
  }
  return why;
}

/// Its pixels, or none where it is refused.
inline Image decoded(const std::string& file, const DecodePolicy& policy = {}) {
  auto image = decode_image(bytes_of(file), "f", policy);
  EXPECT_TRUE(image) << image.error().message;
  return image ? std::move(*image) : Image{};
}

}  // namespace halfwatt
