#include "device/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "device/rapl.h"

namespace halfwatt {
namespace {

Error device_error(std::string message) { return {ErrorKind::device, std::move(message)}; }

FoundDevice found_card(const NvmlEntry& card) {
  return {{DeviceId::Kind::gpu_uuid, card.uuid}, card.name, card.index, card.pci, card.trouble};
}

bool is_called(const FoundDevice& device, const DeviceId& id) {
  switch (id.kind) {
    case DeviceId::Kind::gpu_index:
      return device.index && std::to_string(*device.index) == id.name;
    case DeviceId::Kind::gpu_uuid:
      return device.id.kind == id.kind && !device.id.name.empty() &&
             device.id.name.starts_with(id.name);
    case DeviceId::Kind::gpu_pci:
      return device.pci == id.name;
    case DeviceId::Kind::cpu:
      return device.id.kind == id.kind;
    case DeviceId::Kind::simulated:
      break;
  }
  return false;
}

}  // namespace

DevicePlaces usual_places() {
  DevicePlaces places;
  if (const char* root = std::getenv("HALFWATT_ROOT"); root != nullptr && *root != '\0') {
    places.root = root;
  }
  return places;
}

DeviceList DeviceList::look(const DevicePlaces& places) {
  DeviceList list;
  list.places_ = places;
  if (auto nvml = NvmlLibrary::open(places.nvml, places.root); nvml) {
    list.nvml_ = std::move(*nvml);
    if (auto cards = list.nvml_->cards(); cards) {
      list.cards_ = std::move(*cards);
    } else {
      list.absent_.push_back(cards.error());
    }
    if (list.cards_.empty() && list.absent_.empty()) {
      list.absent_.push_back(device_error("NVML: the driver lists no NVIDIA card"));
    }
  } else {
    list.absent_.push_back(nvml.error());
  }
  for (const NvmlEntry& card : list.cards_) {
    list.devices_.push_back(found_card(card));
  }
  const SteadyClock clock;
  if (const auto cpu = RaplCpu::open(clock, places.root); cpu) {
    list.devices_.push_back(
        {(*cpu)->info().id, (*cpu)->info().name, std::nullopt, "", std::nullopt});
  } else {
    list.absent_.push_back(cpu.error());
  }
  return list;
}

Error DeviceList::nothing_here() const {
  std::string why;
  for (const Error& each : absent_) {
    why += (why.empty() ? "" : "; ") + each.message;
  }
  return device_error("no device to measure: " + why);
}

Result<FoundDevice> DeviceList::find(const DeviceId& id) const {
  if (id.kind == DeviceId::Kind::simulated) {
    return device_error(
        fmt::format("--device {}: simulated devices have nothing to look at; "
                    "needed gpu:N, GPU-<uuid> or cpu",
                    id.text()));
  }
  std::vector<const FoundDevice*> called;
  for (const FoundDevice& device : devices_) {
    if (is_called(device, id)) {
      called.push_back(&device);
    }
  }
  if (called.size() > 1) {
    return bad_input(fmt::format("--device {}: the UUIDs of {} cards begin like that",
                                 id.text(), called.size()));
  }
  if (called.empty()) {
    const bool wants_cpu = id.kind == DeviceId::Kind::cpu;
    for (const Error& each : absent_) {
      if (each.message.starts_with("cpu:") == wants_cpu) {
        return device_error(fmt::format("--device {}: {}", id.text(), each.message));
      }
    }
    return device_error(
        fmt::format("--device {}: there is none; halfwatt devices lists those "
                    "that are here",
                    id.text()));
  }
  if (called.front()->trouble) {
    return *called.front()->trouble;
  }
  return *called.front();
}

Result<std::vector<FoundDevice>> DeviceList::select(std::string_view list) const {
  std::vector<FoundDevice> chosen;
  if (list == "all") {
    std::copy_if(devices_.begin(), devices_.end(), std::back_inserter(chosen),
                 [](const FoundDevice& device) { return !device.trouble; });
    if (chosen.empty()) {
      return devices_.empty() ? nothing_here() : *devices_.front().trouble;
    }
    return chosen;
  }
  while (true) {
    const std::size_t comma = list.find(',');
    const Result<DeviceId> id = DeviceId::parse(list.substr(0, comma));
    if (!id) {
      return id.error();
    }
    Result<FoundDevice> device = find(*id);
    if (!device) {
      return device.error();
    }
    if (std::any_of(chosen.begin(), chosen.end(),
                    [&](const FoundDevice& each) { return each.id == device->id; })) {
      return bad_input(
          fmt::format("--device {}: {} is named twice", id->text(), device->id.text()));
    }
    chosen.push_back(std::move(*device));
    if (comma == std::string_view::npos) {
      return chosen;
    }
    list.remove_prefix(comma + 1);
  }
}

Result<std::unique_ptr<NvmlCard>> DeviceList::open_card(const DeviceId& id) const {
  const Result<FoundDevice> device = find(id);
  if (!device) {
    return device.error();
  }
  if (device->id.kind != DeviceId::Kind::gpu_uuid) {
    return bad_input(
        fmt::format("--device {}: not a card; needed gpu:N or GPU-<uuid>", id.text()));
  }
  return NvmlCard::open(nvml_, device->id.name, places_.root);
}

Result<std::unique_ptr<Device>> DeviceList::open(const DeviceId& id, const Clock& clock) const {
  const auto upcast = [](auto opened) -> Result<std::unique_ptr<Device>> {
    if (!opened) {
      return opened.error();
    }
    return std::unique_ptr<Device>(std::move(*opened));
  };
  if (id.kind == DeviceId::Kind::cpu) {
    return upcast(RaplCpu::open(clock, places_.root));
  }
  return upcast(open_card(id));
}

}  // namespace halfwatt
