#include "base/clock.h"

#include <chrono>
#include <thread>

namespace halfwatt {
namespace {
using SecondsOfSteadyClock = std::chrono::duration<double>;
}

Seconds SteadyClock::now() const {
  return Seconds(
      SecondsOfSteadyClock(std::chrono::steady_clock::now().time_since_epoch()).count());
}

void SteadyClock::sleep_until(Seconds time) {
  const Seconds left = time - now();
  if (left > Seconds(0)) {
    std::this_thread::sleep_for(SecondsOfSteadyClock(left.value()));
  }
}

}  // namespace halfwatt
