#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace halfwatt {

/// How a user names a device; one flag (`--device`) in every command.
struct DeviceId {
  enum class Kind { gpu_index, gpu_uuid, gpu_pci, cpu, simulated };
  Kind kind = Kind::cpu;
  /// "0" for `gpu:0`, the whole id for a UUID, "rtx3090" for `sim:rtx3090`; a PCI id is kept as
  /// Linux writes it, `0000:65:00.0`. Of a group of cards it is the UUIDs of all, separated by
  /// commas.
  std::string name;

  /// Reads `gpu:0`, `GPU-<uuid>`, `0000:65:00.0`, `cpu`, `sim:rtx3090` or `sim:FILE.csv`.
  static Result<DeviceId> parse(std::string_view text);
  /// The text that parse() reads back.
  std::string text() const;
  bool operator==(const DeviceId&) const = default;
};

/// A PCI address as Linux writes it: `0000:65:00.0`.
std::string pci_text(unsigned domain, unsigned bus, unsigned device);

}  // namespace halfwatt
