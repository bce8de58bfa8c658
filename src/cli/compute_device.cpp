#include "cli/compute_device.h"

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "device/devices.h"
#include "device/rapl.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cuda/cuda_backend.h"

namespace halfwatt {

Result<DeviceId> compute_device_asked(const Invocation& invocation) {
  const std::string text = invocation.get("--device").value_or("cpu");
  auto id = DeviceId::parse(text);
  constexpr std::size_t kMostDigits = 4;
  const bool computes =
      id && (id->kind == DeviceId::Kind::cpu ||
             (id->kind == DeviceId::Kind::gpu_index && id->name.size() <= kMostDigits));
  if (!computes) {
    return bad_input(fmt::format("--device {}: needed cpu, or gpu:N for a card", text));
  }
  return id;
}

Option compute_device_option() {
  return {"--device", "DEVICE", "that computes: cpu (the default), or gpu:N, an NVIDIA card"};
}

Option deterministic_option() {
  return {"--deterministic", "",
          "on a card, the algorithms that its library names first, not the fastest: the same "
          "bits whatever was measured"};
}

Result<std::unique_ptr<Backend>> open_backend(const DeviceId& id,
                                              int threads,
                                              bool deterministic) {
  if (id.kind == DeviceId::Kind::cpu) {
    return open_cpu({"cpu", threads});
  }
  // The meter's card and the one that computes are one: by its place, not by its number, which
  // CUDA may have otherwise.
  const auto card = DeviceList::look().find(id);
  if (!card) {
    return card.error();
  }
  CudaOptions options;
  options.pci = card->pci;
  options.deterministic = deterministic;
  if (const auto folder = cache_folder()) {
    options.choices = *folder / "products.txt";
  }
  return open_cuda(options);
}

Result<std::unique_ptr<Device>> open_meter(const DeviceId& id, const Clock& clock) {
  if (id.kind == DeviceId::Kind::cpu) {
    auto rapl = RaplCpu::open(clock, usual_places().root);
    return rapl ? Result<std::unique_ptr<Device>>(std::move(*rapl)) : rapl.error();
  }
  return DeviceList::look().open(id, clock);
}

}  // namespace halfwatt
