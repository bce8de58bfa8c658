#include "fake_nvml/nvml_client.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include <array>

namespace halfwatt {

using fake_nvml::Device;
using fake_nvml::FieldValue;
using fake_nvml::Return;

NvmlClient::NvmlClient(NvmlVariant variant)
    : library_(dlopen(FakeNvml::library(variant).c_str(), RTLD_NOW | RTLD_LOCAL)),
      init_(call(has("nvmlInit_v2") ? "nvmlInit_v2" : "nvmlInit")) {}

NvmlClient::~NvmlClient() {
  if (init_ == Return::success) {
    (void)call("nvmlShutdown");
  }
  if (library_ != nullptr) {
    dlclose(library_);
  }
}

void* NvmlClient::find(const char* name) const {
  return library_ != nullptr ? dlsym(library_, name) : nullptr;
}

Device NvmlClient::device(std::uint32_t index) const {
  const char* const name = has("nvmlDeviceGetHandleByIndex_v2")
                               ? "nvmlDeviceGetHandleByIndex_v2"
                               : "nvmlDeviceGetHandleByIndex";
  Device device = nullptr;
  (void)call(name, index, &device);
  return device;
}

std::optional<std::uint32_t> NvmlClient::limit_mw(std::uint32_t index) const {
  return get<std::uint32_t>("nvmlDeviceGetPowerManagementLimit", index);
}

Return NvmlClient::set_limit(std::uint32_t limit_mw, std::uint32_t index) const {
  return call("nvmlDeviceSetPowerManagementLimit", device(index), limit_mw);
}

FieldValue NvmlClient::field(std::uint32_t id, std::uint32_t index) const {
  FieldValue field{};
  field.id = id;
  field.result = Return::unknown;
  (void)call("nvmlDeviceGetFieldValues", device(index), 1, &field);
  return field;
}

std::optional<std::uint64_t> NvmlClient::energy_mj() const {
  return get<std::uint64_t>("nvmlDeviceGetTotalEnergyConsumption");
}

std::string NvmlClient::text(const char* name, Device device) const {
  std::array<char, 96> text{};
  const Return result = call(name, device, text.data(), std::uint32_t{text.size()});
  return result == Return::success ? text.data() : "";
}

int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace halfwatt
