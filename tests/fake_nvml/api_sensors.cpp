// Clocks, temperatures, fans, utilisation and the reasons why clocks are low.
#include <algorithm>

#include "fake_nvml/library.h"
#include "fake_nvml/sensors.h"
#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

// nvmlClockType_t: graphics 0, SM 1, memory 2, video 3.
constexpr std::uint32_t kMemoryClock = 2;
constexpr std::uint32_t kMostClockType = 3;
constexpr std::uint32_t kMostRpm = 3000;
constexpr std::uint64_t kAllReasons = 0x1ff;

std::uint32_t clock_mhz(Call& call, std::uint32_t type) {
  return type == kMemoryClock ? call.card().memory_mhz : sm_mhz(call);
}

template <class T, class Read>
Return read_one(std::size_t symbol, Device device, T* to, Read read) {
  return answer(symbol, device, Reach::whole_card,
                [to, read](Call& call) { return store(to, read(call)); });
}

std::uint32_t fan_percent(Call& call) {
  return static_cast<std::uint32_t>(std::clamp(temperature_c(call), 30, 100));
}

Return fan(Call& call, std::uint32_t index, std::uint32_t* to) {
  if (call.card().fans == 0) {
    return Return::not_supported;
  }
  return index < call.card().fans ? store(to, fan_percent(call)) : Return::invalid_argument;
}

/// What a policy of nvmlDeviceGetViolationStatus has added up.
std::int64_t violation_ns(Call& call, std::uint32_t policy) {
  const Span now = call.now();
  if (policy == 0) {
    return now.capped_ns;
  }
  return policy == 1 ? now.sw_thermal_ns + now.hw_thermal_ns : 0;
}

}  // namespace

HALFWATT_NVML_API Return nvmlDeviceGetClockInfo(Device device,
                                                std::uint32_t type,
                                                std::uint32_t* to_mhz) {
  return answer(symbol("nvmlDeviceGetClockInfo"), device, Reach::whole_card, [=](Call& call) {
    return type > kMostClockType ? Return::invalid_argument
                                 : store(to_mhz, clock_mhz(call, type));
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetClock(Device device,
                                            std::uint32_t type,
                                            std::uint32_t id,
                                            std::uint32_t* to_mhz) {
  return answer(symbol("nvmlDeviceGetClock"), device, Reach::whole_card, [=](Call& call) {
    if (type > kMostClockType) {
      return Return::invalid_argument;
    }
    return id == 0 ? store(to_mhz, clock_mhz(call, type)) : Return::not_supported;
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetMaxClockInfo(Device device,
                                                   std::uint32_t type,
                                                   std::uint32_t* to_mhz) {
  return answer(
      symbol("nvmlDeviceGetMaxClockInfo"), device, Reach::whole_card, [=](Call& call) {
        if (type > kMostClockType) {
          return Return::invalid_argument;
        }
        return store(to_mhz,
                     type == kMemoryClock ? call.card().memory_mhz : call.card().max_sm_mhz);
      });
}

HALFWATT_NVML_API Return nvmlDeviceGetPerformanceState(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetPerformanceState"), device, to,
                  [](Call& call) { return is_idle(call) ? 8 : 0; });
}

HALFWATT_NVML_API Return nvmlDeviceGetCurrentClocksEventReasons(Device device,
                                                                std::uint64_t* to) {
  return read_one(symbol("nvmlDeviceGetCurrentClocksEventReasons"), device, to, event_reasons);
}

HALFWATT_NVML_API Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device,
                                                                   std::uint64_t* to) {
  return read_one(symbol("nvmlDeviceGetCurrentClocksThrottleReasons"), device, to,
                  event_reasons);
}

HALFWATT_NVML_API Return nvmlDeviceGetSupportedClocksEventReasons(Device device,
                                                                  std::uint64_t* to) {
  return read_one(symbol("nvmlDeviceGetSupportedClocksEventReasons"), device, to,
                  [](Call&) { return kAllReasons; });
}

HALFWATT_NVML_API Return nvmlDeviceGetSupportedClocksThrottleReasons(Device device,
                                                                     std::uint64_t* to) {
  return read_one(symbol("nvmlDeviceGetSupportedClocksThrottleReasons"), device, to,
                  [](Call&) { return kAllReasons; });
}

HALFWATT_NVML_API Return nvmlDeviceGetViolationStatus(Device device,
                                                      std::uint32_t policy,
                                                      Violation* to) {
  return answer(
      symbol("nvmlDeviceGetViolationStatus"), device, Reach::whole_card, [=](Call& call) {
        if (policy > 11 || (policy > 5 && policy < 10)) {
          return Return::invalid_argument;
        }
        return store(to, Violation{static_cast<std::uint64_t>(call.now_ns / 1000),
                                   static_cast<std::uint64_t>(violation_ns(call, policy))});
      });
}

HALFWATT_NVML_API Return nvmlDeviceGetUtilizationRates(Device device, Utilization* to) {
  return read_one(symbol("nvmlDeviceGetUtilizationRates"), device, to, [](Call& call) {
    return is_idle(call) ? Utilization{0, 0} : Utilization{99, 60};
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetTemperature(Device device,
                                                  std::uint32_t sensor,
                                                  std::uint32_t* to_c) {
  return answer(symbol("nvmlDeviceGetTemperature"), device, Reach::whole_card, [=](Call& call) {
    return sensor != 0 ? Return::invalid_argument : store(to_c, temperature_c(call));
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetTemperatureV(Device device, Temperature* to) {
  return answer(symbol("nvmlDeviceGetTemperatureV"), device, Reach::whole_card,
                [=](Call& call) {
                  if (to == nullptr || to->sensor != 0) {
                    return Return::invalid_argument;
                  }
                  if (to->version != version_of<Temperature>(1)) {
                    return Return::argument_version_mismatch;
                  }
                  to->celsius = temperature_c(call);
                  return Return::success;
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetTemperatureThreshold(Device device,
                                                           std::uint32_t type,
                                                           std::uint32_t* to_c) {
  return answer(symbol("nvmlDeviceGetTemperatureThreshold"), device, Reach::whole_card,
                [=](Call& call) {
                  constexpr std::int32_t kAboveSlowdown[] = {3, 0, 10, -8};
                  return type > 3 ? Return::invalid_argument
                                  : store(to_c, call.card().slowdown_c + kAboveSlowdown[type]);
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetMarginTemperature(Device device, Margin* to) {
  return answer(symbol("nvmlDeviceGetMarginTemperature"), device, Reach::whole_card,
                [=](Call& call) {
                  if (to == nullptr) {
                    return Return::invalid_argument;
                  }
                  if (to->version != version_of<Margin>(1)) {
                    return Return::argument_version_mismatch;
                  }
                  to->celsius = call.card().slowdown_c - temperature_c(call);
                  return Return::success;
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetNumFans(Device device, std::uint32_t* to) {
  return answer(symbol("nvmlDeviceGetNumFans"), device, Reach::whole_card, [=](Call& call) {
    return call.card().fans == 0 ? Return::not_supported : store(to, call.card().fans);
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetFanSpeed(Device device, std::uint32_t* to_percent) {
  return answer(symbol("nvmlDeviceGetFanSpeed"), device, Reach::whole_card,
                [=](Call& call) { return fan(call, 0, to_percent); });
}

HALFWATT_NVML_API Return nvmlDeviceGetFanSpeed_v2(Device device,
                                                  std::uint32_t index,
                                                  std::uint32_t* to_percent) {
  return answer(symbol("nvmlDeviceGetFanSpeed_v2"), device, Reach::whole_card,
                [=](Call& call) { return fan(call, index, to_percent); });
}

HALFWATT_NVML_API Return nvmlDeviceGetFanSpeedRPM(Device device, FanSpeed* to) {
  return answer(symbol("nvmlDeviceGetFanSpeedRPM"), device, Reach::whole_card, [=](Call& call) {
    if (to == nullptr) {
      return Return::invalid_argument;
    }
    if (to->version != version_of<FanSpeed>(1)) {
      return Return::argument_version_mismatch;
    }
    std::uint32_t percent = 0;
    const Return result = fan(call, to->fan, &percent);
    to->rpm = percent * kMostRpm / 100;
    return result;
  });
}

}  // namespace halfwatt::fake_nvml
