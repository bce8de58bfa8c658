#include "cli/devices.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/output.h"
#include "device/visible_devices.h"
#include "report/document.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kUnknown = "unknown";

/// One device with what its first reading told.
struct Row {
  OpenDevice open;
  Sample sample;
  std::string cuda;  ///< its number in CUDA; "hidden"
};

/// All that the command shows.
struct Overview {
  std::vector<Row> rows;
  std::vector<std::string> warnings;
  std::vector<std::string> absent;  ///< why a kind of device is not here
};

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string whole(const std::optional<double>& value) {
  return value ? fmt::format("{:g}", *value) : std::string(kUnknown);
}

std::string range(const Sample& sample) {
  const auto& low = sample[SignalId::min_limit];
  const auto& high = sample[SignalId::max_limit];
  return low && high ? fmt::format("{:g}-{:g}", *low, *high) : std::string(kUnknown);
}

std::string energy(const DeviceInfo& info) {
  if (info.energy_method == EnergyMethod::counter && info.energy_tick) {
    return fmt::format("counter, {:g} ms{}", info.energy_tick->value() * 1000,
                       info.energy_is_checked ? "" : "*");
  }
  return std::string(text(info.energy_method));
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? std::string(kUnknown) : text;
}

// What each card is called in CUDA, as far as the environment makes that certain.
void number_for_cuda(const DeviceList& list, Overview& all) {
  const Result<VisibleDevices> visible = visible_devices(list.cards(), cuda_environment());
  if (!visible) {
    all.warnings.push_back(visible.error().message);
    return;
  }
  if (visible->doubt) {
    all.warnings.push_back(*visible->doubt);
  }
  for (Row& row : all.rows) {
    if (row.open.found.id.kind == DeviceId::Kind::cpu) {
      continue;
    }
    row.cuda = visible->doubt ? std::string(kUnknown) : "hidden";
    for (std::size_t i = 0; !visible->doubt && i < visible->devices.size(); ++i) {
      if (visible->devices[i].uuid == row.open.found.id.name) {
        row.cuda = row.cuda == "hidden" ? std::to_string(i) : fmt::format("{},{}", row.cuda, i);
      }
    }
  }
}

Overview look(const DeviceList& list, std::vector<OpenDevice> devices) {
  Overview all;
  for (OpenDevice& open : devices) {
    Row row{std::move(open), {}, {}};
    if (row.open.device != nullptr) {
      Result<Sample> sample = row.open.device->read_quickly();
      if (sample) {
        row.sample = std::move(*sample);
      } else {
        row.open.error = sample.error();
      }
      if (row.open.device->info().sliced) {
        all.warnings.push_back(fmt::format(
            "{}: MIG is on: its power is that of all slices together", row.open.called));
      }
    }
    if (row.open.error) {
      all.warnings.push_back(row.open.error->message);
    }
    all.rows.push_back(std::move(row));
  }
  for (const Error& each : list.absent()) {
    all.absent.push_back(each.message);
  }
  if (!list.cards().empty()) {
    number_for_cuda(list, all);
  }
  return all;
}

Document document(const Overview& all) {
  Table powers{"Power limits in watts, and where joules come from"};
  powers.columns = {{"device", false}, {"name", false},  {"limit"},        {"enforced"},
                    {"default"},       {"range", false}, {"energy", false}};
  Table names{"Names that stay when indices change, and the number in CUDA"};
  names.columns = {{"device", false}, {"id", false}, {"PCI", false}, {"CUDA", false}};
  bool assumed = false;
  for (const Row& row : all.rows) {
    const FoundDevice& found = row.open.found;
    const DeviceInfo* info = row.open.device != nullptr ? &row.open.device->info() : nullptr;
    assumed = assumed || (info != nullptr && info->energy_tick && !info->energy_is_checked);
    powers.rows.push_back({{row.open.called},
                           {or_unknown(found.name)},
                           {whole(row.sample[SignalId::requested_limit])},
                           {whole(row.sample[SignalId::enforced_limit])},
                           {whole(row.sample[SignalId::default_limit])},
                           {range(row.sample)},
                           {info != nullptr ? energy(*info) : std::string(kUnknown)}});
    names.rows.push_back({{row.open.called},
                          {or_unknown(found.id.text())},
                          {found.pci.empty() ? "-" : found.pci},
                          {row.cuda.empty() ? "-" : row.cuda}});
  }
  Document page{"Devices", "measured", {std::move(powers)}};
  if (assumed) {
    page.blocks.emplace_back(
        Note{"*: how often the counter moves is assumed here; tune and sweep measure it"});
  }
  page.blocks.emplace_back(std::move(names));
  for (const std::string& reason : all.absent) {
    page.blocks.emplace_back(Note{reason});
  }
  for (const std::string& warning : all.warnings) {
    page.blocks.emplace_back(Note{warning, true});
  }
  return page;
}

Json to_json(const Row& row) {
  const FoundDevice& found = row.open.found;
  Json json = {{"device", row.open.called},
               {"id", found.id.name.empty() ? found.id.text() : found.id.name},
               {"pci", found.pci.empty() ? Json() : Json(found.pci)},
               {"name", found.name.empty() ? Json() : Json(found.name)},
               {"cuda", row.cuda.empty() || row.cuda == kUnknown ? Json() : Json(row.cuda)},
               {"requested_limit_w", or_null(row.sample[SignalId::requested_limit])},
               {"enforced_limit_w", or_null(row.sample[SignalId::enforced_limit])},
               {"default_limit_w", or_null(row.sample[SignalId::default_limit])},
               {"min_limit_w", or_null(row.sample[SignalId::min_limit])},
               {"max_limit_w", or_null(row.sample[SignalId::max_limit])}};
  json["energy"] = Json();
  json["mig"] = Json();
  if (row.open.device != nullptr) {
    const DeviceInfo& info = row.open.device->info();
    json["energy"] = {{"method", text(info.energy_method)},
                      {"tick_s", info.energy_tick ? Json(info.energy_tick->value()) : Json()},
                      {"relative_error", or_null(info.energy_error)},
                      {"checked", info.energy_is_checked}};
    json["mig"] = info.sliced;
  }
  json["error"] = row.open.error ? Json(row.open.error->message) : Json();
  return json;
}

Result<void> run_devices(const Invocation& invocation) {
  const SteadyClock clock;
  const DeviceList list = DeviceList::look();
  Result<std::vector<OpenDevice>> devices = open_devices(list, invocation, clock);
  if (!devices) {
    return devices.error();
  }
  const Overview all = look(list, std::move(*devices));
  if (!invocation.has("--json")) {
    return print(for_stdout(document(all)));
  }
  Json json = {{"schema", "halfwatt.devices/1"}, {"devices", Json::array()}};
  for (const Row& row : all.rows) {
    json["devices"].push_back(to_json(row));
  }
  json["absent"] = all.absent;
  json["warnings"] = all.warnings;
  return print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string name_now(const FoundDevice& found) {
  return found.index ? fmt::format("gpu:{}", *found.index) : found.id.text();
}

}  // namespace

Option device_option() {
  return {"--device", "LIST",
          "gpu:N, GPU-<uuid>, a PCI id or cpu, separated by commas; default: all"};
}

Result<std::vector<OpenDevice>> open_devices(const DeviceList& list,
                                             const Invocation& invocation,
                                             const Clock& clock) {
  const std::string named = invocation.get("--device").value_or("all");
  Result<std::vector<FoundDevice>> chosen = list.select(named);
  if (!chosen) {
    return chosen.error();
  }
  // Of all that is here, what cannot be read is shown, too: with its reason.
  const std::vector<FoundDevice>& shown = named == "all" ? list.devices() : *chosen;
  std::vector<OpenDevice> devices;
  for (const FoundDevice& found : shown) {
    OpenDevice open{name_now(found), found, nullptr, found.trouble};
    if (!found.trouble) {
      Result<std::unique_ptr<Device>> device = list.open(found.id, clock);
      if (device) {
        open.device = std::move(*device);
      } else {
        open.error = device.error();
      }
    }
    devices.push_back(std::move(open));
  }
  return devices;
}

Command devices_command() {
  Command command;
  command.name = "devices";
  command.summary = "list the cards and processors that can be measured";
  command.description =
      "Lists what is here: power limits, where joules come from, and under which names each "
      "device is known. An index changes with the next card or reboot; the UUID does not. "
      "Reads only.";
  command.options = {device_option(), {"--json", "", "print JSON; docs/devices.md"}};
  command.examples = {
      {"halfwatt devices", "all cards and processors"},
      {"halfwatt devices --device gpu:0 --json", "one card, for a script"},
  };
  command.run = run_devices;
  return command;
}

}  // namespace halfwatt
