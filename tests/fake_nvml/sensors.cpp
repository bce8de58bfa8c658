#include "fake_nvml/sensors.h"

#include <algorithm>
#include <cmath>

namespace halfwatt::fake_nvml {

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kReasonIdle = 0x1;
constexpr std::uint64_t kReasonPowerCap = 0x4;
constexpr std::int64_t kThermalWindowNs = 20'000 * kMs;
constexpr double kClockStepMhz = 15;

/// Mean power from `window_ns` before `end_ns` to there.
double mean_mw(Call& call, std::int64_t end_ns, std::int64_t window_ns) {
  const double drawn_mj =
      call.history().at(end_ns).energy_mj - call.history().at(end_ns - window_ns).energy_mj;
  return drawn_mj / (static_cast<double>(window_ns) / 1e9);
}

std::int64_t last_update_ns(const Call& call) {
  const std::int64_t period_ns = std::max(call.card().power_period_ms, 1U) * kMs;
  return call.now_ns - call.now_ns % period_ns - call.card().power_delay_ms * kMs;
}

}  // namespace

std::uint32_t instant_mw(Call& call) {
  const std::int64_t window_ns = std::max(call.card().power_window_ms, 1U) * kMs;
  return static_cast<std::uint32_t>(
      std::lround(mean_mw(call, last_update_ns(call), window_ns)));
}

std::uint32_t average_mw(Call& call) {
  const std::int64_t window_ns = std::max(call.card().average_ms, 1U) * kMs;
  return static_cast<std::uint32_t>(
      std::lround(mean_mw(call, last_update_ns(call), window_ns)));
}

bool is_idle(Call& call) {
  return call.now().wanted_mw(call.card()) < call.card().idle_below_mw;
}

std::uint32_t sm_mhz(Call& call) {
  if (is_idle(call)) {
    return call.card().idle_sm_mhz;
  }
  // Power grows with about the third power of the clock.
  const Span now = call.now();
  const double share =
      std::cbrt(static_cast<double>(now.draw_mw(call.card())) / now.wanted_mw(call.card()));
  const double mhz = std::floor(call.card().max_sm_mhz * share / kClockStepMhz) * kClockStepMhz;
  return static_cast<std::uint32_t>(mhz);
}

std::int32_t temperature_c(Call& call) {
  const double mean_w = mean_mw(call, call.now_ns, kThermalWindowNs) / 1000;
  return call.card().ambient_c +
         static_cast<std::int32_t>(std::lround(mean_w * call.card().kelvin_per_watt));
}

std::uint64_t event_reasons(Call& call) {
  const Span now = call.now();
  return now.extra_reasons | (is_idle(call) ? kReasonIdle : 0) |
         (now.is_capped(call.card()) ? kReasonPowerCap : 0);
}

std::uint64_t pcie_bytes(Call& call) {
  const double passed_s = static_cast<double>(call.now_ns) / 1e9;
  return static_cast<std::uint64_t>(passed_s *
                                    static_cast<double>(call.card().pcie_bytes_per_s));
}

}  // namespace halfwatt::fake_nvml
