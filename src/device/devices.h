#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "device/device.h"
#include "device/nvml_card.h"
#include "device/nvml_library.h"

namespace halfwatt {

/// Where devices are looked for.
struct DevicePlaces {
  std::string nvml = NvmlLibrary::usual_path();
  std::filesystem::path root = "/";  ///< of /proc and /sys
};

/// This machine; HALFWATT_NVML and, for tests, HALFWATT_ROOT put others in its place.
DevicePlaces usual_places();

/// One device that is here. `gpu:0` is how it is called now; `id` stays.
struct FoundDevice {
  DeviceId id;                    ///< a UUID, or `cpu`
  std::string name;               ///< empty: unknown
  std::optional<unsigned> index;  ///< NVML's, of a card
  std::string pci;                ///< empty: unknown or none
  std::optional<Error> trouble;   ///< why it cannot be read
};

/// The devices of this machine, found once. Cards that are opened here keep the driver loaded.
class DeviceList {
 public:
  /// Looks for cards and processors; never fails, since a machine without any is one, too.
  static DeviceList look(const DevicePlaces& places = usual_places());

  const std::vector<FoundDevice>& devices() const { return devices_; }
  /// Why there are no NVIDIA cards, or no processor: one line each.
  const std::vector<Error>& absent() const { return absent_; }
  /// nullptr without NVML.
  const std::shared_ptr<const NvmlLibrary>& nvml() const { return nvml_; }
  const std::vector<NvmlEntry>& cards() const { return cards_; }

  /// The device that `id` names now: an index or a PCI id becomes the UUID, which stays.
  /// Errors: there is none, or it cannot be read; simulated devices are not found here.
  Result<FoundDevice> find(const DeviceId& id) const;
  /// Reads `--device LIST`: ids separated by commas, or `all`. Errors: a bad id, one that is
  /// named twice, one that is not here; for `all`, that there is none.
  Result<std::vector<FoundDevice>> select(std::string_view list) const;
  /// Opens the device. `clock` outlives it. Errors: as find(), or it is lost.
  Result<std::unique_ptr<Device>> open(const DeviceId& id, const Clock& clock) const;
  /// The same for a card, for whoever needs what only a card has. Errors: also for `cpu`.
  Result<std::unique_ptr<NvmlCard>> open_card(const DeviceId& id) const;

 private:
  Error nothing_here() const;

  DevicePlaces places_;
  std::shared_ptr<const NvmlLibrary> nvml_;  // shared with every card that is opened
  std::vector<NvmlEntry> cards_;
  std::vector<FoundDevice> devices_;
  std::vector<Error> absent_;
};

}  // namespace halfwatt
