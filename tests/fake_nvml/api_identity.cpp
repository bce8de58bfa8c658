// Who a card is, and what its links and memory are made of.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "fake_nvml/library.h"
#include "fake_nvml/sensors.h"
#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

constexpr std::uint32_t kAmpereArchitecture = 7;

template <class T, class Read>
Return read_one(std::size_t symbol, Device device, T* to, Read read) {
  return answer(symbol, device, Reach::whole_card,
                [to, read](Call& call) { return store(to, read(call)); });
}

PciInfo pci_info(const Card& card) {
  PciInfo info{};
  unsigned function = 0;
  std::sscanf(card.pci_bus_id.c_str(), "%x:%x:%x.%x", &info.domain, &info.bus, &info.device,
              &function);
  info.pci_device_id = card.pci_device_id;
  std::snprintf(info.bus_id, sizeof info.bus_id, "%s", card.pci_bus_id.c_str());
  std::snprintf(info.bus_id_legacy, sizeof info.bus_id_legacy, "%04X:%02X:%02X.%X",
                info.domain & 0xffff, info.bus & 0xff, info.device & 0xff, function & 0xf);
  return info;
}

/// A slice has its share of the memory.
std::uint64_t share(const Call& call, std::uint64_t bytes) {
  return call.handle.slice ? bytes / call.card().mig_slices : bytes;
}

std::uint32_t link_generation(Call& call) {
  return is_idle(call) ? 1 : call.card().pcie_generation;
}

}  // namespace

HALFWATT_NVML_API Return nvmlDeviceGetName(Device device, char* to, std::uint32_t size) {
  return answer(symbol("nvmlDeviceGetName"), device, Reach::slices_too,
                [=](Call& call) { return copy_text(call.card().name, to, size); });
}

HALFWATT_NVML_API Return nvmlDeviceGetSerial(Device device, char* to, std::uint32_t size) {
  return answer(symbol("nvmlDeviceGetSerial"), device, Reach::whole_card, [=](Call& call) {
    return call.card().serial.empty() ? Return::not_supported
                                      : copy_text(call.card().serial, to, size);
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetVbiosVersion(Device device,
                                                   char* to,
                                                   std::uint32_t size) {
  return answer(symbol("nvmlDeviceGetVbiosVersion"), device, Reach::whole_card,
                [=](Call& call) { return copy_text(call.card().vbios, to, size); });
}

HALFWATT_NVML_API Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* to) {
  return read_one(symbol("nvmlDeviceGetPciInfo_v3"), device, to,
                  [](Call& call) { return pci_info(call.card()); });
}

HALFWATT_NVML_API Return nvmlDeviceGetIndex(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetIndex"), device, to,
                  [](Call& call) { return call.handle.card; });
}

HALFWATT_NVML_API Return nvmlDeviceGetMinorNumber(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetMinorNumber"), device, to,
                  [](Call& call) { return call.card().minor_number.value_or(0); });
}

HALFWATT_NVML_API Return nvmlDeviceGetArchitecture(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetArchitecture"), device, to,
                  [](Call& call) { return call.card().architecture; });
}

HALFWATT_NVML_API Return nvmlDeviceGetCudaComputeCapability(Device device,
                                                            int* major,
                                                            int* minor) {
  return answer(
      symbol("nvmlDeviceGetCudaComputeCapability"), device, Reach::whole_card, [=](Call& call) {
        const Return first = store(major, call.card().compute_major);
        return first == Return::success ? store(minor, call.card().compute_minor) : first;
      });
}

HALFWATT_NVML_API Return nvmlDeviceGetMemoryInfo(Device device, Memory* to) {
  return answer(symbol("nvmlDeviceGetMemoryInfo"), device, Reach::slices_too, [=](Call& call) {
    const std::uint64_t total = share(call, call.card().memory_bytes);
    const std::uint64_t used =
        share(call, call.card().memory_used_bytes + call.card().memory_reserved_bytes);
    return store(to, Memory{total, total - used, used});
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* to) {
  return answer(symbol("nvmlDeviceGetMemoryInfo_v2"), device, Reach::slices_too,
                [=](Call& call) {
                  if (to == nullptr) {
                    return Return::invalid_argument;
                  }
                  if (to->version != version_of<MemoryV2>(2)) {
                    return Return::argument_version_mismatch;
                  }
                  to->total = share(call, call.card().memory_bytes);
                  to->reserved = share(call, call.card().memory_reserved_bytes);
                  to->used = share(call, call.card().memory_used_bytes);
                  to->free = to->total - to->reserved - to->used;
                  return Return::success;
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetBAR1MemoryInfo(Device device, Memory* to) {
  constexpr std::uint64_t kBar1Bytes = 256ULL << 20;
  return read_one(symbol("nvmlDeviceGetBAR1MemoryInfo"), device, to, [](Call&) {
    return Memory{kBar1Bytes, kBar1Bytes - (4ULL << 20), 4ULL << 20};
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetCurrPcieLinkGeneration(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetCurrPcieLinkGeneration"), device, to, link_generation);
}

HALFWATT_NVML_API Return nvmlDeviceGetMaxPcieLinkGeneration(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetMaxPcieLinkGeneration"), device, to,
                  [](Call& call) { return call.card().pcie_generation; });
}

HALFWATT_NVML_API Return nvmlDeviceGetGpuMaxPcieLinkGeneration(Device device,
                                                               std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetGpuMaxPcieLinkGeneration"), device, to,
                  [](Call& call) { return call.card().pcie_generation; });
}

HALFWATT_NVML_API Return nvmlDeviceGetCurrPcieLinkWidth(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetCurrPcieLinkWidth"), device, to,
                  [](Call& call) { return call.card().pcie_width; });
}

HALFWATT_NVML_API Return nvmlDeviceGetMaxPcieLinkWidth(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetMaxPcieLinkWidth"), device, to,
                  [](Call& call) { return call.card().pcie_width; });
}

HALFWATT_NVML_API Return nvmlDeviceGetPcieReplayCounter(Device device, std::uint32_t* to) {
  return read_one(symbol("nvmlDeviceGetPcieReplayCounter"), device, to,
                  [](Call&) { return 0U; });
}

HALFWATT_NVML_API Return nvmlDeviceGetPcieThroughput(Device device,
                                                     std::uint32_t direction,
                                                     std::uint32_t* to_kb_per_s) {
  return answer(
      symbol("nvmlDeviceGetPcieThroughput"), device, Reach::whole_card, [=](Call& call) {
        return direction > 1 ? Return::invalid_argument
                             : store(to_kb_per_s, call.card().pcie_bytes_per_s / 1000);
      });
}

HALFWATT_NVML_API Return nvmlDeviceGetEccMode(Device device,
                                              std::uint32_t* current,
                                              std::uint32_t* pending) {
  return answer(symbol("nvmlDeviceGetEccMode"), device, Reach::whole_card, [=](Call& call) {
    if (!call.card().ecc) {
      return Return::not_supported;
    }
    const Return first = store(current, 1);
    return first == Return::success ? store(pending, 1) : first;
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetTotalEccErrors(Device device,
                                                     std::uint32_t type,
                                                     std::uint32_t counter,
                                                     std::uint64_t* to) {
  return answer(symbol("nvmlDeviceGetTotalEccErrors"), device, Reach::whole_card,
                [=](Call& call) {
                  if (type > 1 || counter > 1) {
                    return Return::invalid_argument;
                  }
                  return call.card().ecc ? store(to, 0) : Return::not_supported;
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetRemappedRows(Device device,
                                                   std::uint32_t* corrected,
                                                   std::uint32_t* uncorrected,
                                                   std::uint32_t* pending,
                                                   std::uint32_t* failed) {
  return answer(symbol("nvmlDeviceGetRemappedRows"), device, Reach::whole_card,
                [=](Call& call) {
                  if (!call.card().ecc || call.card().architecture < kAmpereArchitecture) {
                    return Return::not_supported;
                  }
                  for (std::uint32_t* const to : {corrected, uncorrected, pending, failed}) {
                    if (store(to, 0) != Return::success) {
                      return Return::invalid_argument;
                    }
                  }
                  return Return::success;
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetRetiredPagesPendingStatus(Device device,
                                                                std::uint32_t* to) {
  return answer(
      symbol("nvmlDeviceGetRetiredPagesPendingStatus"), device, Reach::whole_card,
      [to](Call& call) { return call.card().ecc ? store(to, 0) : Return::not_supported; });
}

}  // namespace halfwatt::fake_nvml
