#include "device/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>

#include "base/device_id.h"

namespace halfwatt {
namespace {

constexpr std::uint32_t kVersionSize = 80;

struct Meaning {
  nvml::Return code;
  std::string_view text;
};

constexpr std::array kMeanings = {
    Meaning{nvml::kUninitialized, "the library is not initialised"},
    Meaning{nvml::kInvalidArgument, "an argument is invalid"},
    Meaning{nvml::kNotSupported, "the card does not support it"},
    Meaning{nvml::kNoPermission, "no permission"},
    Meaning{nvml::kNotFound, "not found"},
    Meaning{nvml::kInsufficientPower, "a power cable of the card is not plugged in"},
    Meaning{nvml::kDriverNotLoaded, "the driver is not loaded"},
    Meaning{nvml::kTimeout, "the driver did not answer in time"},
    Meaning{nvml::kIrqIssue, "the kernel has trouble with the card's interrupts"},
    Meaning{nvml::kLibraryNotFound, "a library of the driver is missing"},
    Meaning{nvml::kFunctionNotFound, "the library lacks the function"},
    Meaning{nvml::kGpuIsLost, "the GPU is lost: it fell off the bus"},
    Meaning{nvml::kResetRequired, "the card needs a reset"},
    Meaning{nvml::kOperatingSystem, "the operating system or a cgroup blocks the card"},
    Meaning{nvml::kVersionMismatch, "driver and library are of different versions"},
    Meaning{nvml::kInUse, "the card is in use"},
    Meaning{nvml::kUnknown, "unknown error of the driver"},
};

Error device_error(std::string message) { return {ErrorKind::device, std::move(message)}; }

// "... Kernel Module  535.129.03  Thu Oct 19 ...": the first word that begins with a digit and
// has a dot in it.
std::optional<std::string> loaded_driver(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/driver/nvidia/version");
  for (std::string word; in >> word;) {
    if (word.front() >= '0' && word.front() <= '9' && word.find('.') != std::string::npos) {
      return word;
    }
  }
  return std::nullopt;
}

std::optional<std::string> version_by(nvml::Return (*ask)(char*, std::uint32_t)) {
  std::array<char, kVersionSize> text{};
  if (ask == nullptr || ask(text.data(), kVersionSize - 1) != nvml::kSuccess) {
    return std::nullopt;
  }
  return std::string(text.data());
}

// Asked of the library, or else of its file: libnvidia-ml.so.1 is a link to
// libnvidia-ml.so.535.183.01, and before it is initialised not every library answers.
std::optional<std::string> library_version(const nvml::Calls& calls) {
  if (auto version = version_by(calls.library_version)) {
    return version;
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(calls.count), &info) == 0) {
    return std::nullopt;
  }
  std::error_code failed;
  const auto file = std::filesystem::canonical(info.dli_fname, failed).filename().string();
  constexpr std::string_view kBefore = ".so.";
  const std::size_t at = file.find(kBefore);
  if (failed || at == std::string::npos) {
    return std::nullopt;
  }
  std::string version = file.substr(at + kBefore.size());
  return version.find('.') != std::string::npos ? std::optional(std::move(version))
                                                : std::nullopt;
}

// Why initialising failed, and what mends it.
Error init_error(nvml::Return code,
                 const nvml::Calls& calls,
                 const std::filesystem::path& root) {
  switch (code) {
    case nvml::kDriverNotLoaded:
      return device_error(
          "NVML: the NVIDIA driver is not loaded (NVML code 9); needed its kernel module: "
          "modprobe nvidia, or a reboot after installing it");
    case nvml::kLibraryNotFound:
      return device_error(
          "NVML: a library of the NVIDIA driver is missing (NVML code 12); needed a whole "
          "installation of it, in a container the capability utility "
          "(NVIDIA_DRIVER_CAPABILITIES=utility)");
    case nvml::kVersionMismatch:
      return device_error(fmt::format(
          "NVML: the loaded driver is {} and the library {} (NVML code 18): the driver was "
          "updated while it was in use; needed a reboot, or its kernel modules loaded again",
          loaded_driver(root).value_or("of unknown version"),
          library_version(calls).value_or("of unknown version")));
    case nvml::kNoPermission:
      return device_error(
          "NVML: no permission to use the NVIDIA driver (NVML code 4); needed read and write "
          "permission for /dev/nvidiactl and /dev/nvidia0, ...: see ls -l /dev/nvidia*");
    case nvml::kOperatingSystem:
      return device_error(
          "NVML: the operating system or a cgroup blocks the NVIDIA devices (NVML code 17); "
          "needed a container or job that was given a GPU (docker run --gpus all)");
    case nvml::kUnknown:
      return device_error(
          "NVML: unknown error of the driver (NVML code 999); in a container it has lost its "
          "devices, as after systemctl daemon-reload: start the container again; elsewhere see "
          "dmesg");
    default:
      return device_error(fmt::format("NVML: {}", nvml_text(code)));
  }
}

// Looks for a function by its names, the newest first.
template <class Function>
void find(void* library, Function*& call, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (call == nullptr) {
      call = reinterpret_cast<Function*>(dlsym(library, name));
    }
  }
}

void find_system_calls(void* at, nvml::Calls& calls) {
  find(at, calls.init, {"nvmlInit_v2", "nvmlInit"});
  find(at, calls.init_with_flags, {"nvmlInitWithFlags"});
  find(at, calls.shutdown, {"nvmlShutdown"});
  find(at, calls.driver_version, {"nvmlSystemGetDriverVersion"});
  find(at, calls.library_version, {"nvmlSystemGetNVMLVersion"});
  find(at, calls.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  find(at, calls.handle_by_index,
       {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find(at, calls.handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  find(at, calls.name, {"nvmlDeviceGetName"});
  find(at, calls.uuid, {"nvmlDeviceGetUUID"});
  find(at, calls.pci_info,
       {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  find(at, calls.mig_mode, {"nvmlDeviceGetMigMode"});
  find(at, calls.mig_count, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(at, calls.mig_handle, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(at, calls.persistence, {"nvmlDeviceGetPersistenceMode"});
}

void find_signal_calls(void* at, nvml::Calls& calls) {
  find(at, calls.fields, {"nvmlDeviceGetFieldValues"});
  find(at, calls.energy_mj, {"nvmlDeviceGetTotalEnergyConsumption"});
  find(at, calls.power_mw, {"nvmlDeviceGetPowerUsage"});
  find(at, calls.requested_limit_mw, {"nvmlDeviceGetPowerManagementLimit"});
  find(at, calls.enforced_limit_mw, {"nvmlDeviceGetEnforcedPowerLimit"});
  find(at, calls.default_limit_mw, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  find(at, calls.limit_range_mw, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  find(at, calls.clock_mhz, {"nvmlDeviceGetClockInfo"});
  find(at, calls.temperature_v, {"nvmlDeviceGetTemperatureV"});
  find(at, calls.temperature, {"nvmlDeviceGetTemperature"});
  find(at, calls.margin, {"nvmlDeviceGetMarginTemperature"});
  find(at, calls.fan_percent, {"nvmlDeviceGetFanSpeed_v2"});
  find(at, calls.first_fan_percent, {"nvmlDeviceGetFanSpeed"});
  find(at, calls.event_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(at, calls.violation, {"nvmlDeviceGetViolationStatus"});
  find(at, calls.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(at, calls.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(at, calls.memory, {"nvmlDeviceGetMemoryInfo"});
  find(at, calls.pcie_generation, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  find(at, calls.pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  find(at, calls.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  find(at, calls.processes_v3, {"nvmlDeviceGetComputeRunningProcesses_v3"});
  find(at, calls.processes_v2, {"nvmlDeviceGetComputeRunningProcesses_v2"});
  find(at, calls.processes_v1, {"nvmlDeviceGetComputeRunningProcesses"});
}

std::string text_by(nvml::Text* ask, nvml::DeviceHandle device) {
  std::array<char, nvml::kTextSize + 1> text{};
  if (ask == nullptr || ask(device, text.data(), nvml::kTextSize) != nvml::kSuccess) {
    return "";
  }
  return text.data();
}

std::vector<std::string> slices_of(const nvml::Calls& calls, nvml::DeviceHandle device) {
  std::vector<std::string> uuids;
  std::uint32_t count = 0;
  if (calls.mig_count == nullptr || calls.mig_handle == nullptr ||
      calls.mig_count(device, &count) != nvml::kSuccess) {
    return uuids;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    nvml::DeviceHandle slice = nullptr;
    if (calls.mig_handle(device, i, &slice) == nvml::kSuccess) {
      uuids.push_back(text_by(calls.uuid, slice));
    }
  }
  return uuids;
}

}  // namespace

std::string nvml_text(nvml::Return code) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code == code) {
      return fmt::format("{} (NVML code {})", meaning.text, code);
    }
  }
  return fmt::format("NVML code {}", code);
}

std::string pci_address(const nvml::Calls& calls, nvml::DeviceHandle device) {
  // Larger than any version of the struct; domain, bus and device are at one place in all.
  std::array<char, 256> bytes{};
  if (calls.pci_info == nullptr || calls.pci_info(device, bytes.data()) != nvml::kSuccess) {
    return "";
  }
  nvml::PciInfo info;
  std::memcpy(&info, bytes.data(), sizeof(info));
  return pci_text(info.domain, info.bus, info.device);
}

std::string NvmlLibrary::usual_path() {
  const char* named = std::getenv("HALFWATT_NVML");
  // Never libnvidia-ml.so: a CUDA toolkit has a library of that name only to link against, and
  // it answers nothing.
  return named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1";
}

NvmlLibrary::NvmlLibrary(void* library) : library_(library) {
  find_system_calls(library_, calls_);
  find_signal_calls(library_, calls_);
}

Result<std::shared_ptr<const NvmlLibrary>> NvmlLibrary::open(
    const std::string& path, const std::filesystem::path& root) {
  // Unloading a driver's library wins nothing, and would have to be right in its code.
  void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (loaded == nullptr) {
    const char* why = dlerror();
    return device_error(
        fmt::format("NVML: {}; needed the NVIDIA driver, in a container the host's (docker run "
                    "--gpus all), or HALFWATT_NVML=FILE",
                    why != nullptr ? why : path));
  }
  // Shared by the cards, which must be able to outlive whoever opened it: a driver without
  // persistence forgets limits when its last user closes it.
  std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(loaded));
  const nvml::Calls& calls = library->calls_;
  if ((calls.init == nullptr && calls.init_with_flags == nullptr) || calls.count == nullptr ||
      calls.handle_by_index == nullptr || calls.uuid == nullptr) {
    return device_error(
        fmt::format("NVML: {} is not NVML, or one without any card in it; needed the driver's "
                    "libnvidia-ml.so.1, or HALFWATT_NVML=FILE",
                    path));
  }
  const nvml::Return code = calls.init != nullptr ? calls.init() : calls.init_with_flags(0);
  if (code != nvml::kSuccess) {
    return init_error(code, calls, root);
  }
  library->initialized_ = true;
  return std::shared_ptr<const NvmlLibrary>(std::move(library));
}

NvmlLibrary::~NvmlLibrary() {
  if (initialized_ && calls_.shutdown != nullptr) {
    calls_.shutdown();
  }
  dlclose(library_);
}

void* NvmlLibrary::symbol(const char* name) const { return dlsym(library_, name); }

NvmlEntry NvmlLibrary::entry(unsigned index) const {
  NvmlEntry entry;
  entry.index = index;
  nvml::DeviceHandle device = nullptr;
  const nvml::Return code = calls_.handle_by_index(index, &device);
  if (code != nvml::kSuccess) {
    entry.trouble = device_error(fmt::format("gpu:{}: {}", index, nvml_text(code)));
    return entry;
  }
  entry.uuid = text_by(calls_.uuid, device);
  entry.name = text_by(calls_.name, device);
  entry.pci = pci_address(calls_, device);
  entry.slices = slices_of(calls_, device);
  if (entry.uuid.empty()) {
    entry.trouble = device_error(
        fmt::format("gpu:{}: the driver does not tell its UUID, so it cannot be told apart "
                    "from other cards",
                    index));
  }
  return entry;
}

Result<std::vector<NvmlEntry>> NvmlLibrary::cards() const {
  std::uint32_t count = 0;
  if (const nvml::Return code = calls_.count(&count); code != nvml::kSuccess) {
    return device_error(fmt::format("NVML: the cards cannot be listed: {}", nvml_text(code)));
  }
  std::vector<NvmlEntry> entries;
  for (std::uint32_t index = 0; index < count; ++index) {
    entries.push_back(entry(index));
  }
  return entries;
}

Result<nvml::DeviceHandle> NvmlLibrary::handle(const std::string& uuid) const {
  nvml::DeviceHandle device = nullptr;
  nvml::Return code = nvml::kNotFound;
  if (calls_.handle_by_uuid != nullptr) {
    code = calls_.handle_by_uuid(uuid.c_str(), &device);
    if (code == nvml::kSuccess) {
      return device;
    }
  }
  std::uint32_t count = 0;
  if (calls_.count(&count) != nvml::kSuccess) {
    count = 0;
  }
  for (std::uint32_t index = 0; code == nvml::kNotFound && index < count; ++index) {
    if (calls_.handle_by_index(index, &device) == nvml::kSuccess &&
        text_by(calls_.uuid, device) == uuid) {
      return device;
    }
  }
  return device_error(fmt::format("{}: {}", uuid, nvml_text(code)));
}

std::optional<std::string> NvmlLibrary::driver_version() const {
  return version_by(calls_.driver_version);
}

}  // namespace halfwatt
