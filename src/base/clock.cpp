#include "base/clock.h"

#include <time.h>

#include <chrono>
#include <thread>

namespace halfwatt {
namespace {
using SecondsOfSteadyClock = std::chrono::duration<double>;

Seconds read(clockid_t clock) {
  constexpr double kNano = 1e-9;
  timespec time{};
  ::clock_gettime(clock, &time);
  return Seconds(static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * kNano);
}
}  // namespace

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

// CLOCK_BOOTTIME goes on while the machine is suspended, CLOCK_MONOTONIC does not. Whoever
// loses the processor between the two readings would see a sleep: so the shortest of a few
// counts.
Seconds SteadyClock::asleep() const {
  constexpr int kReadings = 3;
  Seconds shortest{0};
  Seconds apart{0};
  for (int i = 0; i < kReadings; ++i) {
    const Seconds before = read(CLOCK_MONOTONIC);
    const Seconds boot = read(CLOCK_BOOTTIME);
    const Seconds after = read(CLOCK_MONOTONIC);
    if (i == 0 || after - before < shortest) {
      shortest = after - before;
      apart = boot - before;
    }
  }
  return apart;
}

}  // namespace halfwatt
