#pragma once

#include <string>
#include <string_view>

#include "report/document.h"

namespace halfwatt {

/// ANSI attributes around text, or nothing where colour is off.
class Ink {
 public:
  explicit Ink(bool colour) : colour_(colour) {}

  std::string bold(std::string_view text) const { return painted(text, "1"); }
  std::string warning(std::string_view text) const { return painted(text, "33"); }
  std::string faint(std::string_view text) const { return painted(text, "2"); }

  std::string emphasized(std::string_view text, Emphasis emphasis) const {
    switch (emphasis) {
      case Emphasis::plain:
        break;
      case Emphasis::good:
        return painted(text, "1;32");
      case Emphasis::bad:
        return painted(text, "31");
      case Emphasis::faint:
        return faint(text);
      case Emphasis::struck:
        return painted(text, "2;9");
    }
    return std::string(text);
  }

 private:
  std::string painted(std::string_view text, std::string_view attributes) const {
    if (!colour_ || text.empty()) {
      return std::string(text);
    }
    return std::string("\x1b[").append(attributes).append("m").append(text).append("\x1b[0m");
  }

  bool colour_;
};

}  // namespace halfwatt
