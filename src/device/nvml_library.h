#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/nvml_api.h"

namespace halfwatt {

/// One card as the driver lists it. An index changes over reboots; the UUID does not.
struct NvmlEntry {
  unsigned index = 0;
  std::string uuid;                 ///< empty where `trouble` says why
  std::string pci;                  ///< `0000:65:00.0`; empty: unknown
  std::string name;                 ///< empty: unknown
  std::vector<std::string> slices;  ///< UUIDs of its MIG slices
  std::optional<Error> trouble;     ///< why the driver gives no access to it
};

/// NVML, loaded and initialised; shut down with the last owner.
///
/// Its functions may be called from any thread. Every one of them is optional: drivers differ.
class NvmlLibrary {
 public:
  /// Loads `path` and initialises it. `root` is where /proc is looked for, "/" but in tests.
  /// Errors, one line each: no such library, no driver, versions that differ, no permission.
  static Result<std::shared_ptr<const NvmlLibrary>> open(
      const std::string& path, const std::filesystem::path& root = "/");
  /// What HALFWATT_NVML names, or the driver's libnvidia-ml.so.1.
  static std::string usual_path();

  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const nvml::Calls& calls() const { return calls_; }
  /// The address of a function by its name; null where the library lacks it. For guard/, which
  /// alone knows the functions that write.
  void* symbol(const char* name) const;

  /// All cards, also those that the driver gives no access to. Errors: the driver does not list
  /// them. Empty: there are none.
  Result<std::vector<NvmlEntry>> cards() const;
  /// The handle of the card with this UUID. Errors: it is not there or is not accessible.
  Result<nvml::DeviceHandle> handle(const std::string& uuid) const;

  /// "580.159.04"; nullopt where it is not told.
  std::optional<std::string> driver_version() const;

 private:
  explicit NvmlLibrary(void* library);
  NvmlEntry entry(unsigned index) const;

  void* library_;
  nvml::Calls calls_{};
  bool initialized_ = false;
};

/// What a return code means: "the GPU is lost (NVML code 15)".
std::string nvml_text(nvml::Return code);

/// The card's PCI address, `0000:65:00.0`; empty where the driver does not tell it.
std::string pci_address(const nvml::Calls& calls, nvml::DeviceHandle device);

}  // namespace halfwatt
