// Power, energy and limits: what halfwatt is about.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fake_nvml/library.h"
#include "fake_nvml/sensors.h"
#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

Event asked(EventKind kind, std::uint32_t value) {
  Event event{};
  event.kind = kind;
  event.source = Source::call;
  event.value = value;
  event.in_force = value;
  return event;
}

bool may_set(const Call& call) {
  const Script& script = call.session.script();
  return script.anyone_may_set || (script.root_may_set && geteuid() == 0) ||
         std::getenv("HALFWATT_FAKE_NVML_PRIVILEGED") != nullptr;
}

/// Every attempt becomes part of the history, so that tests can judge by it.
Return set_limit(Call& call, std::uint32_t limit_mw) {
  const Card& card = call.card();
  Event event = asked(EventKind::limit, limit_mw);
  Return result = Return::success;
  if (!may_set(call)) {
    result = Return::no_permission;
  } else if (limit_mw < card.min_mw || limit_mw > card.max_mw) {
    result = Return::invalid_argument;
  } else {
    event.in_force = call.effects.set_instead_mw.value_or(
        limit_mw - limit_mw % std::max(card.limit_step_mw, 1U));
    event.has_effect = call.effects.ignore ? 0 : 1;
  }
  event.result = static_cast<std::uint32_t>(result);
  if (call.effects.revert_after_s) {
    event.revert_at_ns = call.now_ns + std::llround(*call.effects.revert_after_s * 1e9);
  }
  call.history().append(event);
  return result;
}

template <class Read>
Return read_u32(std::size_t symbol, Device device, std::uint32_t* to, Read read) {
  return answer(symbol, device, Reach::whole_card,
                [to, read](Call& call) { return store(to, read(call)); });
}

}  // namespace

HALFWATT_NVML_API Return nvmlDeviceGetPowerUsage(Device device, std::uint32_t* to_mw) {
  return read_u32(symbol("nvmlDeviceGetPowerUsage"), device, to_mw, [](Call& call) {
    return call.card().power_usage_is_average ? average_mw(call) : instant_mw(call);
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetTotalEnergyConsumption(Device device,
                                                             std::uint64_t* to_mj) {
  return answer(symbol("nvmlDeviceGetTotalEnergyConsumption"), device, Reach::whole_card,
                [to_mj](Call& call) {
                  if (call.card().no_energy_counter) {
                    return Return::not_supported;
                  }
                  return store(to_mj, call.history().counter_mj(call.now_ns));
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetPowerManagementLimit(Device device,
                                                           std::uint32_t* to_mw) {
  return read_u32(symbol("nvmlDeviceGetPowerManagementLimit"), device, to_mw,
                  [](Call& call) { return call.now().requested_mw; });
}

HALFWATT_NVML_API Return nvmlDeviceGetEnforcedPowerLimit(Device device, std::uint32_t* to_mw) {
  return read_u32(symbol("nvmlDeviceGetEnforcedPowerLimit"), device, to_mw,
                  [](Call& call) { return call.now().enforced_mw(); });
}

HALFWATT_NVML_API Return nvmlDeviceGetPowerManagementDefaultLimit(Device device,
                                                                  std::uint32_t* to_mw) {
  return read_u32(symbol("nvmlDeviceGetPowerManagementDefaultLimit"), device, to_mw,
                  [](Call& call) { return call.card().default_mw; });
}

HALFWATT_NVML_API Return nvmlDeviceGetPowerManagementLimitConstraints(Device device,
                                                                      std::uint32_t* min_mw,
                                                                      std::uint32_t* max_mw) {
  return answer(symbol("nvmlDeviceGetPowerManagementLimitConstraints"), device,
                Reach::whole_card, [=](Call& call) {
                  const Return first = store(min_mw, call.card().min_mw);
                  return first == Return::success ? store(max_mw, call.card().max_mw) : first;
                });
}

HALFWATT_NVML_API Return nvmlDeviceSetPowerManagementLimit(Device device,
                                                           std::uint32_t limit_mw) {
  return answer(symbol("nvmlDeviceSetPowerManagementLimit"), device, Reach::whole_card,
                [limit_mw](Call& call) { return set_limit(call, limit_mw); });
}

HALFWATT_NVML_API Return nvmlDeviceSetPowerManagementLimit_v2(Device device,
                                                              const PowerValue* value) {
  return answer(symbol("nvmlDeviceSetPowerManagementLimit_v2"), device, Reach::whole_card,
                [value](Call& call) {
                  if (value == nullptr) {
                    return Return::invalid_argument;
                  }
                  if (value->version != version_of<PowerValue>(2)) {
                    return Return::argument_version_mismatch;
                  }
                  // Only the GPU has a limit here, not its module or memory.
                  return value->scope == 0 ? set_limit(call, value->limit_mw)
                                           : Return::not_supported;
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetPersistenceMode(Device device, std::uint32_t* to) {
  return read_u32(symbol("nvmlDeviceGetPersistenceMode"), device, to,
                  [](Call& call) { return call.now().persistence; });
}

HALFWATT_NVML_API Return nvmlDeviceSetPersistenceMode(Device device, std::uint32_t mode) {
  return answer(symbol("nvmlDeviceSetPersistenceMode"), device, Reach::whole_card,
                [mode](Call& call) {
                  Event event = asked(EventKind::persistence, mode);
                  Return result = Return::success;
                  if (!may_set(call)) {
                    result = Return::no_permission;
                  } else if (mode > 1) {
                    result = Return::invalid_argument;
                  } else {
                    event.has_effect = call.effects.ignore ? 0 : 1;
                  }
                  event.result = static_cast<std::uint32_t>(result);
                  call.history().append(event);
                  return result;
                });
}

}  // namespace halfwatt::fake_nvml
