#pragma once

#include <memory>
#include <string>

#include "device/nvml_library.h"
#include "guard/limit_control.h"

namespace halfwatt {

/// The limit of a real card, through NVML: the only place in halfwatt that writes to one.
class NvmlLimit final : public LimitControl {
 public:
  /// The card with this UUID; a MIG slice has none of its own. Errors: it is not there.
  static Result<std::unique_ptr<LimitControl>> open(std::shared_ptr<const NvmlLibrary> library,
                                                    const std::string& uuid);
  Result<Watts> read() override;
  Result<void> write(Watts limit) override;
  Result<LimitState> look() override;

 private:
  NvmlLimit(std::shared_ptr<const NvmlLibrary> library,
            nvml::DeviceHandle card,
            std::string uuid)
      : library_(std::move(library)), card_(card), uuid_(std::move(uuid)) {}
  nvml::Return set(std::uint32_t limit_mw) const;
  Error error(const char* what, nvml::Return code) const;

  std::shared_ptr<const NvmlLibrary> library_;  // keeps the driver, and so the limit, loaded
  nvml::DeviceHandle card_;
  std::string uuid_;
};

}  // namespace halfwatt
