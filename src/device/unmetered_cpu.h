#pragma once

#include <filesystem>

#include "device/device.h"

namespace halfwatt {

/// Processors whose energy nothing tells, as those of a virtual machine: what runs on them is
/// timed, and its joules are unknown.
class UnmeteredCpu final : public Device {
 public:
  /// `root` is "/" but in tests.
  explicit UnmeteredCpu(const std::filesystem::path& root = "/");

  const DeviceInfo& info() const override { return info_; }
  /// Knows no signal.
  Result<Sample> read() override { return Sample{}; }
  std::optional<Joules> energy() override { return std::nullopt; }

 private:
  DeviceInfo info_;
};

}  // namespace halfwatt
