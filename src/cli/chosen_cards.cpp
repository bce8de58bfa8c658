#include "cli/chosen_cards.h"

#include <fmt/format.h>

#include <algorithm>

namespace halfwatt {
namespace {

constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";

Error device_error(std::string message) { return {ErrorKind::device, std::move(message)}; }

std::string assignment(const CudaEnvironment& cuda) {
  return fmt::format("{}={}", kVariable, cuda.visible_devices.value_or(""));
}

bool contains(const std::vector<VisibleDevice>& shown, const std::string& uuid) {
  return std::any_of(shown.begin(), shown.end(),
                     [&uuid](const VisibleDevice& each) { return each.uuid == uuid; });
}

bool contains(const std::vector<DeviceId>& ids, const std::string& uuid) {
  return std::any_of(ids.begin(), ids.end(),
                     [&uuid](const DeviceId& each) { return each.name == uuid; });
}

Result<std::vector<DeviceId>> cards_among(const std::vector<FoundDevice>& devices,
                                          const std::optional<std::string>& asked) {
  std::vector<DeviceId> cards;
  for (const FoundDevice& each : devices) {
    if (each.id.kind != DeviceId::Kind::cpu) {
      cards.push_back(each.id);
    } else if (asked && *asked != "all") {
      return device_error("--device cpu: it has no power limit; needed a card");
    }
  }
  if (cards.empty()) {
    return device_error("no card here can be used; halfwatt devices says why");
  }
  return cards;
}

// What the command would see, held against what was named.
Result<void> compare(const DeviceList& list, const CudaEnvironment& cuda, ChosenCards& chosen) {
  const Result<VisibleDevices> visible = visible_devices(list.cards(), cuda);
  if (!visible) {
    return visible.error();
  }
  if (visible->doubt) {
    chosen.remarks.push_back(*visible->doubt);
    return {};
  }
  for (const DeviceId& each : chosen.ids) {
    if (!contains(visible->devices, each.name)) {
      return device_error(
          fmt::format("--device: {} hides {} from the command; needed both to name the same "
                      "cards, or {} not set",
                      assignment(cuda), each.text(), kVariable));
    }
  }
  for (const VisibleDevice& each : visible->devices) {
    if (!contains(chosen.ids, each.uuid)) {
      chosen.remarks.push_back(fmt::format(
          "{} shows the command {}, too, which --device does not name: what it does there is "
          "not measured",
          assignment(cuda), each.uuid));
    }
  }
  return {};
}

void restrict_command(const DeviceList& list, ChosenCards& chosen) {
  const std::size_t usable = static_cast<std::size_t>(
      std::count_if(list.cards().begin(), list.cards().end(),
                    [](const NvmlEntry& each) { return !each.uuid.empty(); }));
  if (chosen.ids.size() >= usable) {
    return;  // there are no others that it could use
  }
  std::vector<std::string> names;
  for (const DeviceId& each : chosen.ids) {
    names.push_back(each.name);
  }
  const std::string value = fmt::format("{}", fmt::join(names, ","));
  chosen.environment = {{kVariable, value}};
  chosen.remarks.push_back(fmt::format(
      "the command gets {}={}, so that it runs on what --device names", kVariable, value));
}

Result<ChosenCards> choose_named(const DeviceList& list,
                                 const std::string& asked,
                                 const CudaEnvironment& cuda) {
  const Result<std::vector<FoundDevice>> found = list.select(asked);
  if (!found) {
    return found.error();
  }
  Result<std::vector<DeviceId>> cards = cards_among(*found, asked);
  if (!cards) {
    return cards.error();
  }
  ChosenCards chosen{std::move(*cards), {}, {}};
  if (!cuda.visible_devices) {
    restrict_command(list, chosen);
    return chosen;
  }
  const Result<void> fine = compare(list, cuda, chosen);
  return fine ? Result<ChosenCards>(std::move(chosen)) : fine.error();
}

Result<ChosenCards> choose_visible(const DeviceList& list, const CudaEnvironment& cuda) {
  const Result<VisibleDevices> visible = visible_devices(list.cards(), cuda);
  if (!visible) {
    return visible.error();
  }
  if (visible->doubt) {
    return device_error(*visible->doubt + ", with --device");
  }
  ChosenCards chosen;
  for (const VisibleDevice& each : visible->devices) {
    const Result<FoundDevice> card = list.find({DeviceId::Kind::gpu_uuid, each.uuid});
    if (!card) {
      return card.error();
    }
    if (!contains(chosen.ids, card->id.name)) {  // two slices are one card
      chosen.ids.push_back(card->id);
    }
  }
  if (chosen.ids.empty()) {
    return device_error(
        fmt::format("{}: it shows the command no card; needed one there, or {} not set",
                    assignment(cuda), kVariable));
  }
  return chosen;
}

std::string called(const FoundDevice& card) {
  const std::string name = card.index ? fmt::format("gpu:{}", *card.index) : card.id.text();
  return card.name.empty() ? name : fmt::format("{} ({})", name, card.name);
}

}  // namespace

Result<ChosenCards> choose_cards(const DeviceList& list,
                                 const std::optional<std::string>& asked,
                                 const CudaEnvironment& cuda) {
  if (list.cards().empty() && asked.value_or("all") == "all") {
    return list.absent().front();  // why there is none; that of the processor comes behind
  }
  if (asked) {
    return choose_named(list, *asked, cuda);
  }
  const Result<std::vector<FoundDevice>> found = list.select("all");
  if (!found) {
    return found.error();
  }
  Result<std::vector<DeviceId>> cards = cards_among(*found, asked);
  if (!cards) {
    return cards.error();
  }
  if (cuda.visible_devices) {
    return choose_visible(list, cuda);
  }
  if (cards->size() == 1) {
    return ChosenCards{std::move(*cards), {}, {}};
  }
  std::vector<std::string> names;
  for (const FoundDevice& each : *found) {
    if (each.id.kind != DeviceId::Kind::cpu) {
      names.push_back(called(each));
    }
  }
  return device_error(fmt::format(
      "--device is missing: this machine has several cards, {}; needed those that the command "
      "uses",
      fmt::join(names, ", ")));
}

}  // namespace halfwatt
