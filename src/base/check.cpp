#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace halfwatt::detail {

void broken_invariant(const char* file, int line, const char* text) {
  std::fprintf(stderr, "halfwatt: %s:%d: broken invariant: %s\n", file, line, text);
  std::abort();
}

}  // namespace halfwatt::detail
