#include "engine/data/escape.h"

#include <csetjmp>

#include "base/check.h"

namespace halfwatt {

bool Escape::run(void (*body)(void*), void* context) {
  std::jmp_buf way_out;
  way_out_ = &way_out;
  // NOLINTNEXTLINE(cert-err52-cpp): what the C libraries ask for
  const bool left = setjmp(way_out) != 0;
  if (!left) {
    body(context);
  }
  way_out_ = nullptr;
  return !left;
}

void Escape::leave() {
  HALFWATT_CHECK(way_out_ != nullptr, "leave() outside run()");
  std::longjmp(*static_cast<std::jmp_buf*>(way_out_), 1);
}

}  // namespace halfwatt
