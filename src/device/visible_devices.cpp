#include "device/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace halfwatt {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (!word.empty() && word.front() == ' ') {
      word.remove_prefix(1);
    }
    while (!word.empty() && word.back() == ' ') {
      word.remove_suffix(1);
    }
    words.emplace_back(word);
    if (comma == std::string_view::npos) {
      return words;
    }
    text.remove_prefix(comma + 1);
  }
}

Error refused(const std::string& id, std::string_view what) {
  return {
      ErrorKind::device,
      fmt::format("CUDA_VISIBLE_DEVICES: {}: {}; halfwatt devices lists the cards", id, what)};
}

Result<VisibleDevice> card_called(const std::vector<NvmlEntry>& cards, const std::string& id) {
  std::vector<VisibleDevice> found;
  for (const NvmlEntry& card : cards) {
    if (!card.uuid.empty() && card.uuid.starts_with(id)) {
      found.push_back({card.uuid, ""});
    }
  }
  if (found.size() != 1) {
    return refused(id, found.empty() ? "no card here has that UUID"
                                     : "the UUIDs of several cards begin like that");
  }
  return found.front();
}

// MIG-<uuid of the slice>, or of older drivers MIG-GPU-<uuid>/<instance>/<instance>.
Result<VisibleDevice> slice_called(const std::vector<NvmlEntry>& cards, const std::string& id) {
  constexpr std::string_view kOld = "MIG-GPU-";
  if (id.starts_with(kOld)) {
    Result<VisibleDevice> card = card_called(cards, id.substr(4, id.find('/') - 4));
    if (card) {
      card->slice = id;
    }
    return card;
  }
  std::vector<VisibleDevice> found;
  for (const NvmlEntry& card : cards) {
    for (const std::string& slice : card.slices) {
      if (slice.starts_with(id)) {
        found.push_back({card.uuid, slice});
      }
    }
  }
  if (found.size() != 1) {
    return refused(id, found.empty() ? "no MIG slice here has that UUID"
                                     : "the UUIDs of several MIG slices begin like that");
  }
  return found.front();
}

bool all_alike(const std::vector<NvmlEntry>& cards) {
  return std::all_of(cards.begin(), cards.end(), [&](const NvmlEntry& card) {
    return !card.name.empty() && card.name == cards.front().name;
  });
}

std::optional<std::size_t> index_in(const std::string& word) {
  std::size_t value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == word.data() + word.size();
  return whole ? std::optional(value) : std::nullopt;
}

bool among(const std::vector<VisibleDevice>& devices, const VisibleDevice& one) {
  return std::any_of(devices.begin(), devices.end(), [&one](const VisibleDevice& each) {
    return each.uuid == one.uuid && each.slice == one.slice;
  });
}

constexpr std::string_view kDoubt =
    "CUDA numbers the fastest card first, and which that is only CUDA knows: set "
    "CUDA_DEVICE_ORDER=PCI_BUS_ID, or name cards by UUID";

}  // namespace

CudaEnvironment cuda_environment() {
  return {variable("CUDA_VISIBLE_DEVICES"), variable("CUDA_DEVICE_ORDER")};
}

Result<VisibleDevices> visible_devices(const std::vector<NvmlEntry>& cards,
                                       const CudaEnvironment& environment) {
  std::vector<NvmlEntry> ordered;
  std::copy_if(cards.begin(), cards.end(), std::back_inserter(ordered),
               [](const NvmlEntry& card) { return !card.uuid.empty(); });
  std::sort(ordered.begin(), ordered.end(),
            [](const NvmlEntry& a, const NvmlEntry& b) { return a.pci < b.pci; });
  // Cards of one kind are as fast as each other, and CUDA then keeps the order of the bus.
  const bool certain =
      environment.device_order == "PCI_BUS_ID" || ordered.size() < 2 || all_alike(ordered);
  VisibleDevices visible;
  if (!environment.visible_devices) {
    for (const NvmlEntry& card : ordered) {
      visible.devices.push_back({card.uuid, ""});
    }
    if (!certain) {
      visible.doubt = kDoubt;
    }
    return visible;
  }
  for (const std::string& word : split(*environment.visible_devices)) {
    Result<VisibleDevice> device = VisibleDevice{};
    if (word.starts_with("GPU-")) {
      device = card_called(ordered, word);
    } else if (word.starts_with("MIG-")) {
      device = slice_called(ordered, word);
    } else if (const auto index = index_in(word); index && *index < ordered.size()) {
      device = VisibleDevice{ordered[*index].uuid, ""};
      if (!certain) {
        visible.doubt = fmt::format("CUDA_VISIBLE_DEVICES: {}: {}", word, kDoubt);
      }
    } else {
      return visible;  // CUDA ends its list here, too: at -1, nothing, or an index too high
    }
    if (!device) {
      return device.error();
    }
    if (among(visible.devices, *device)) {
      return refused(word, "it is named twice, and CUDA then shows no card");
    }
    visible.devices.push_back(std::move(*device));
  }
  return visible;
}

}  // namespace halfwatt
