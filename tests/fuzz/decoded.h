#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "engine/data/codecs.h"

namespace halfwatt {

/// Small enough that a whole picture takes no time, large enough for every way through.
inline DecodePolicy fuzzed_policy() {
  DecodePolicy policy;
  policy.most_pixels = 1 << 14;
  policy.most_scans = 20;
  return policy;
}

/// What everything that decodes relies on: a whole picture within the limits, or one line.
inline void check_decoded(const Result<StoredImage>& stored,
                          const std::string& name,
                          const DecodePolicy& policy) {
  if (!stored) {
    const std::string& message = stored.error().message;
    HALFWATT_CHECK(stored.error().kind == ErrorKind::bad_input, "a bad file is bad input");
    HALFWATT_CHECK(message.starts_with(name + ": "), "an error names the file");
    HALFWATT_CHECK(message.find("needs") != message.npos, "an error says what is needed");
    HALFWATT_CHECK(message.size() < 1000, "an error is short");
    HALFWATT_CHECK(std::ranges::all_of(message, [](char c) { return c >= 0x20 && c < 0x7f; }),
                   "an error is one line of printable ASCII");
    return;
  }
  const Image& image = stored->image;
  HALFWATT_CHECK(image.width > 0 && image.height > 0, "a picture has pixels");
  HALFWATT_CHECK(image.width * image.height <= policy.most_pixels, "not too many of them");
  HALFWATT_CHECK(
      image.pixels.size() == static_cast<std::size_t>(3 * image.width * image.height),
      "all of them");
  const int orientation = stored->orientation.value_or(1);
  HALFWATT_CHECK(orientation >= 1 && orientation <= 8, "an orientation is 1 to 8");
}

}  // namespace halfwatt
