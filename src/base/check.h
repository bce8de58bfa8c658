#pragma once

namespace halfwatt::detail {

/// Prints `file:line: broken invariant: text` on stderr and aborts.
[[noreturn]] void broken_invariant(const char* file, int line, const char* text);

}  // namespace halfwatt::detail

/// A condition that no user input can break; always checked.
#define HALFWATT_CHECK(condition, text)                                 \
  do {                                                                  \
    if (!(condition)) {                                                 \
      ::halfwatt::detail::broken_invariant(__FILE__, __LINE__, (text)); \
    }                                                                   \
  } while (false)
