#pragma once

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/result.h"

namespace halfwatt {

/// Holds an error about the bytes of `file` to what an error about a file has to be.
inline void check_refusal(const Error& error, const std::string& file) {
  HALFWATT_CHECK(error.kind == ErrorKind::bad_input, "a bad file is bad input");
  HALFWATT_CHECK(error.message.starts_with(file + ":"), "an error names the file");
  HALFWATT_CHECK(error.message.size() < 1000, "an error is short");
  HALFWATT_CHECK(
      std::ranges::all_of(error.message, [](char c) { return c >= 0x20 && c < 0x7f; }),
      "an error is one line of printable ASCII");
}

}  // namespace halfwatt
