#include "device/unmetered_cpu.h"

#include "device/cpu_model.h"

namespace halfwatt {

UnmeteredCpu::UnmeteredCpu(const std::filesystem::path& root) {
  info_.id = {DeviceId::Kind::cpu, ""};
  info_.name = cpu_model(root);
  info_.energy_is_checked = true;  // there is none to be wrong
}

}  // namespace halfwatt
