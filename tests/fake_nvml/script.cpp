#include "fake_nvml/script.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

/// An absent optional is `null` in the file, or not there.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& to, const std::optional<T>& from) {
    to = from ? json(*from) : json(nullptr);
  }
  static void from_json(const json& from, std::optional<T>& to) {
    to = from.is_null() ? std::nullopt : std::optional<T>(from.get<T>());
  }
};

namespace halfwatt::fake_nvml {

namespace {

/// A misspelt key would silently be a default: everything given has to be known.
void refuse_unknown_keys(const nlohmann::json& given,
                         const nlohmann::json& known,
                         const std::string& where) {
  for (const auto& [key, value] : given.items()) {
    if (given.is_object() && !known.contains(key)) {
      throw std::runtime_error(fmt::format("unknown key {}.{}", where, key));
    }
    if (value.is_structured()) {
      const std::string inside = where + "." + key;
      refuse_unknown_keys(value, given.is_object() ? known.at(key) : known.at(std::stoul(key)),
                          inside);
    }
  }
}

void complete(Card& card, std::size_t index) {
  if (card.uuid.empty()) {
    card.uuid = fmt::format("GPU-fa4e0000-0000-4000-8000-{:012x}", index);
  }
  if (card.pci_bus_id.empty()) {
    card.pci_bus_id = fmt::format("00000000:{:02X}:00.0", index + 1);
  }
  if (!card.minor_number) {
    card.minor_number = static_cast<std::uint32_t>(index);
  }
  if (!card.found_mw) {
    card.found_mw = card.default_mw;
  }
}

}  // namespace

// By hand, since one line for each key would be long.
// clang-format off
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Process, pid, bytes, kind, sm_percent, memory_percent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Happening, at_s, limit_mw, demand_mw, cap_mw, persistence, extra_reasons, energy, reload)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Card, name, uuid, serial, vbios, pci_bus_id, pci_device_id, minor_number, architecture,
    compute_major, compute_minor, min_mw, max_mw, default_mw, found_mw, cap_mw, limit_step_mw,
    persistence, demand_mw, swing_ms, swing_low_mw, swing_high_share, idle_below_mw,
    power_period_ms, power_window_ms, power_delay_ms, average_ms, power_usage_is_average,
    energy_tick_ms, energy_quantum_mj, energy_start_mj, energy_scale, no_energy_counter,
    max_sm_mhz, idle_sm_mhz, memory_mhz, ambient_c, kelvin_per_watt, slowdown_c, fans,
    memory_bytes, memory_used_bytes, memory_reserved_bytes, pcie_generation, pcie_width,
    pcie_bytes_per_s, recovery_action, nvlinks, ecc, mig_enabled, mig_slices,
    process_records_535, processes, no_fields, no_fields_from, happenings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Fault, symbol, card, field, from_s, until_s, from_call, until_call, armed, code, block_s,
    ignore, revert_after_s, set_instead_mw, raise_before, raise_after)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Script, state, cards, faults, anyone_may_set, root_may_set, unloads_without_clients,
    virtual_clock, call_us, call_is_busy, symbol_us, driver_version, nvml_version, cuda_version)
// clang-format on

Script completed(Script script, const std::string& path) {
  if (script.state.empty()) {
    script.state = path + ".state";
  }
  for (std::size_t i = 0; i < script.cards.size(); ++i) {
    complete(script.cards[i], i);
  }
  if (script.faults.size() > 64) {
    throw std::runtime_error(fmt::format("{} faults, at most 64", script.faults.size()));
  }
  return script;
}

Script read_script(const std::string& path) {
  try {
    std::ifstream file(path);
    if (!file) {
      throw std::runtime_error("cannot be read");
    }
    const nlohmann::json given = nlohmann::json::parse(file);
    const auto script = given.get<Script>();
    refuse_unknown_keys(given, script, "script");
    return completed(script, path);
  } catch (const std::exception& problem) {
    throw std::runtime_error(fmt::format("{}: {}", path, problem.what()));
  }
}

std::string to_text(const Script& script) { return nlohmann::json(script).dump(2); }

}  // namespace halfwatt::fake_nvml
