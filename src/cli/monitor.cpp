#include "cli/monitor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/devices.h"
#include "cli/output.h"
#include "report/document.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

// A processor shows power only as the difference of two readings.
constexpr Seconds kBetweenReadings{0.2};
constexpr double kBytesInGib = 1 << 30;

/// What one device said.
struct Seen {
  OpenDevice open;
  Sample sample;
};

Seen read(OpenDevice open, Clock& clock) {
  Seen seen{std::move(open), {}};
  if (seen.open.device == nullptr) {
    return seen;
  }
  Device& device = *seen.open.device;
  Result<Sample> sample = device.read();
  if (sample && seen.open.found.id.kind == DeviceId::Kind::cpu) {
    clock.sleep_until(clock.now() + kBetweenReadings);
    sample = device.read();
  }
  if (!sample) {
    seen.open.error = sample.error();
    return seen;
  }
  seen.sample = std::move(*sample);
  if (const auto energy = device.energy()) {
    seen.sample[SignalId::energy] = energy->value();
  }
  return seen;
}

std::string shown_unit(const Signal& signal) {
  return signal.unit == "B" ? "GiB" : std::string(signal.unit);
}

std::string shown(const Signal& signal, const std::optional<double>& value) {
  if (!value) {
    return "unknown";
  }
  if (signal.unit == "B") {
    return fmt::format("{:.2f}", *value / kBytesInGib);
  }
  if (signal.unit == "mask") {
    return fmt::format("0x{:x}", static_cast<std::uint64_t>(*value));
  }
  if (signal.unit == "W" || signal.unit == "J") {
    return fmt::format("{:.1f}", *value);
  }
  return signal.unit == "s" ? fmt::format("{:.3f}", *value) : fmt::format("{:.0f}", *value);
}

Document document(const std::vector<Seen>& all) {
  Table table;
  table.columns = {{"signal", false}, {"unit", false}};
  for (const Seen& seen : all) {
    table.columns.push_back({seen.open.called});
  }
  for (const Signal& signal : kSignals) {
    std::vector<Cell> row = {{std::string(signal.name)}, {shown_unit(signal)}};
    for (const Seen& seen : all) {
      const auto& value = seen.sample[signal.id];
      row.push_back({shown(signal, value), value ? Emphasis::plain : Emphasis::faint});
    }
    table.rows.push_back(std::move(row));
  }
  Document page{"All signals, once", "measured", {std::move(table)}};
  for (const Seen& seen : all) {
    if (seen.open.error) {
      page.blocks.emplace_back(Note{seen.open.error->message, true});
    }
  }
  return page;
}

// The unit stands behind the name, as in all our files: power_w, memory_used_b.
std::string key(const Signal& signal) {
  constexpr std::string_view kUnits[][2] = {{"W", "_w"},    {"J", "_j"}, {"MHz", "_mhz"},
                                            {"C", "_c"},    {"s", "_s"}, {"%", "_percent"},
                                            {"B", "_bytes"}};
  std::string name(signal.name);
  for (const auto& [unit, suffix] : kUnits) {
    name += signal.unit == unit ? suffix : "";
  }
  return name;
}

Json to_json(const Seen& seen) {
  const FoundDevice& found = seen.open.found;
  Json json = {{"device", seen.open.called},
               {"id", found.id.name.empty() ? found.id.text() : found.id.name},
               {"name", found.name.empty() ? Json() : Json(found.name)}};
  Json& signals = json["signals"] = Json::object();
  for (const Signal& signal : kSignals) {
    const auto& value = seen.sample[signal.id];
    signals[key(signal)] = value ? Json(*value) : Json();
  }
  json["error"] = seen.open.error ? Json(seen.open.error->message) : Json();
  return json;
}

Result<void> run_monitor(const Invocation& invocation) {
  if (!invocation.has("--once")) {
    return bad_input(
        "monitor: the live view is for a later version; needed --once, which shows all signals "
        "once");
  }
  SteadyClock clock;
  const DeviceList list = DeviceList::look();
  Result<std::vector<OpenDevice>> devices = open_devices(list, invocation, clock);
  if (!devices) {
    return devices.error();
  }
  std::vector<Seen> all;
  std::optional<Error> lost;
  for (OpenDevice& open : *devices) {
    const bool was_readable = !open.found.trouble;
    all.push_back(read(std::move(open), clock));
    lost = was_readable && all.back().open.error ? all.back().open.error : lost;
  }
  Json json = {{"schema", "halfwatt.monitor/1"}, {"devices", Json::array()}};
  for (const Seen& seen : all) {
    json["devices"].push_back(to_json(seen));
  }
  const Result<void> printed = print(
      invocation.has("--json") ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                               : for_stdout(document(all)));
  return printed && lost ? Result<void>(*lost) : printed;
}

}  // namespace

Command monitor_command() {
  Command command;
  command.name = "monitor";
  command.summary = "show all signals of all devices, once";
  command.description =
      "Reads every signal of every device once: power, energy, limits, clocks, temperatures, "
      "reasons for slowing down, utilisation, memory, PCIe, ECC and foreign processes. What a "
      "device does not tell is unknown, never 0. docs/devices.md says where each comes from.";
  command.options = {{"--once", "", "needed: the live view is for a later version"},
                     {"--json", "", "print JSON; docs/devices.md"},
                     device_option()};
  command.examples = {
      {"halfwatt monitor --once", "all devices"},
      {"halfwatt monitor --once --json --device gpu:0,cpu", "two of them, for a script"},
  };
  command.run = run_monitor;
  return command;
}

}  // namespace halfwatt
