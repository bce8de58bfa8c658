// Init, Shutdown, versions, words for errors, and the ways to a card.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "fake_nvml/library.h"
#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

std::string slice_uuid(const Card& card, std::size_t slice) {
  return fmt::format("MIG-{:04x}{}", slice,
                     card.uuid.substr(std::min<std::size_t>(8, card.uuid.size())));
}

Return count(std::size_t symbol, std::uint32_t* to) {
  return answer(symbol,
                [to](Session& session) { return store(to, session.script().cards.size()); });
}

/// The answer of a call that finds a card: it meets that card's faults.
Return found(Session& session, std::size_t symbol, Handle handle, Device* to) {
  if (to == nullptr) {
    return Return::invalid_argument;
  }
  const Effects effects = session.enter(handle.card, symbol);
  if (effects.code) {
    return *effects.code;
  }
  *to = session.device(handle);
  return Return::success;
}

Return by_index(std::size_t symbol, std::uint32_t index, Device* to) {
  const std::shared_ptr<Session> open = session();
  if (!open) {
    return Return::uninitialized;
  }
  if (index >= open->script().cards.size()) {
    return Return::invalid_argument;
  }
  return found(*open, symbol, {index, std::nullopt}, to);
}

Return by_pci(std::size_t symbol, const char* id, Device* to) {
  const std::shared_ptr<Session> open = session();
  if (!open) {
    return Return::uninitialized;
  }
  const std::string wanted = id != nullptr ? id : "";
  const auto& cards = open->script().cards;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    // Both widths of the domain are accepted, as by the real one.
    if (wanted == cards[i].pci_bus_id || "0000" + wanted == cards[i].pci_bus_id) {
      return found(*open, symbol, {i, std::nullopt}, to);
    }
  }
  return id == nullptr ? Return::invalid_argument : Return::not_found;
}

std::optional<Handle> with_uuid(const Script& script, const std::string& uuid) {
  for (std::size_t i = 0; i < script.cards.size(); ++i) {
    if (uuid == script.cards[i].uuid) {
      return Handle{i, std::nullopt};
    }
    for (std::size_t slice = 0; slice < script.cards[i].mig_slices; ++slice) {
      if (uuid == slice_uuid(script.cards[i], slice)) {
        return Handle{i, slice};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

HALFWATT_NVML_API Return nvmlInit() { return enter_library(symbol("nvmlInit")); }
HALFWATT_NVML_API Return nvmlInit_v2() { return enter_library(symbol("nvmlInit_v2")); }
HALFWATT_NVML_API Return nvmlInitWithFlags(std::uint32_t /*flags*/) {
  return enter_library(symbol("nvmlInitWithFlags"));
}
HALFWATT_NVML_API Return nvmlShutdown() { return leave_library(symbol("nvmlShutdown")); }

HALFWATT_NVML_API const char* nvmlErrorString(Return result) {
  switch (result) {
    case Return::success:
      return "Success";
    case Return::uninitialized:
      return "Uninitialized";
    case Return::invalid_argument:
      return "Invalid Argument";
    case Return::not_supported:
      return "Not Supported";
    case Return::no_permission:
      return "Insufficient Permissions";
    case Return::not_found:
      return "Not Found";
    case Return::insufficient_size:
      return "Insufficient Size";
    case Return::driver_not_loaded:
      return "Driver Not Loaded";
    case Return::gpu_is_lost:
      return "GPU is lost";
    case Return::version_mismatch:
      return "Driver/library version mismatch";
    case Return::argument_version_mismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

HALFWATT_NVML_API Return nvmlSystemGetDriverVersion(char* to, std::uint32_t size) {
  return answer(symbol("nvmlSystemGetDriverVersion"), [=](Session& session) {
    return copy_text(session.script().driver_version, to, size);
  });
}

HALFWATT_NVML_API Return nvmlSystemGetNVMLVersion(char* to, std::uint32_t size) {
  return answer(symbol("nvmlSystemGetNVMLVersion"), [=](Session& session) {
    return copy_text(session.script().nvml_version, to, size);
  });
}

HALFWATT_NVML_API Return nvmlSystemGetCudaDriverVersion(int* to) {
  return answer(symbol("nvmlSystemGetCudaDriverVersion"),
                [to](Session& session) { return store(to, session.script().cuda_version); });
}
HALFWATT_NVML_API Return nvmlSystemGetCudaDriverVersion_v2(int* to) {
  return answer(symbol("nvmlSystemGetCudaDriverVersion_v2"),
                [to](Session& session) { return store(to, session.script().cuda_version); });
}

HALFWATT_NVML_API Return nvmlDeviceGetCount(std::uint32_t* to) {
  return count(symbol("nvmlDeviceGetCount"), to);
}
HALFWATT_NVML_API Return nvmlDeviceGetCount_v2(std::uint32_t* to) {
  return count(symbol("nvmlDeviceGetCount_v2"), to);
}

HALFWATT_NVML_API Return nvmlDeviceGetHandleByIndex(std::uint32_t index, Device* to) {
  return by_index(symbol("nvmlDeviceGetHandleByIndex"), index, to);
}
HALFWATT_NVML_API Return nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, Device* to) {
  return by_index(symbol("nvmlDeviceGetHandleByIndex_v2"), index, to);
}

HALFWATT_NVML_API Return nvmlDeviceGetHandleByPciBusId(const char* id, Device* to) {
  return by_pci(symbol("nvmlDeviceGetHandleByPciBusId"), id, to);
}
HALFWATT_NVML_API Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* to) {
  return by_pci(symbol("nvmlDeviceGetHandleByPciBusId_v2"), id, to);
}

HALFWATT_NVML_API Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* to) {
  const std::shared_ptr<Session> open = session();
  if (!open) {
    return Return::uninitialized;
  }
  if (uuid == nullptr) {
    return Return::invalid_argument;
  }
  const std::optional<Handle> handle = with_uuid(open->script(), uuid);
  return handle ? found(*open, symbol("nvmlDeviceGetHandleByUUID"), *handle, to)
                : Return::not_found;
}

HALFWATT_NVML_API Return nvmlDeviceGetUUID(Device device, char* to, std::uint32_t size) {
  return answer(symbol("nvmlDeviceGetUUID"), device, Reach::slices_too, [=](const Call& call) {
    const Card& card = call.card();
    const auto& slice = call.handle.slice;
    return copy_text(slice ? slice_uuid(card, *slice) : card.uuid, to, size);
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetMigMode(Device device,
                                              std::uint32_t* current,
                                              std::uint32_t* pending) {
  return answer(symbol("nvmlDeviceGetMigMode"), device, Reach::whole_card, [=](Call& call) {
    // Ampere's and newer data-centre boards know the mode; others do not.
    if (!call.card().mig_enabled && call.card().mig_slices == 0) {
      return Return::not_supported;
    }
    const Return first = store(current, call.card().mig_enabled ? 1 : 0);
    return first == Return::success ? store(pending, *current) : first;
  });
}

HALFWATT_NVML_API Return nvmlDeviceGetMaxMigDeviceCount(Device device, std::uint32_t* to) {
  return answer(symbol("nvmlDeviceGetMaxMigDeviceCount"), device, Reach::whole_card,
                [to](Call& call) { return store(to, call.card().mig_slices); });
}

HALFWATT_NVML_API Return nvmlDeviceGetMigDeviceHandleByIndex(Device device,
                                                             std::uint32_t index,
                                                             Device* to) {
  return answer(symbol("nvmlDeviceGetMigDeviceHandleByIndex"), device, Reach::whole_card,
                [=](Call& call) {
                  if (!call.card().mig_enabled || index >= call.card().mig_slices) {
                    return Return::not_found;
                  }
                  return store(to, call.session.device({call.handle.card, index}));
                });
}

HALFWATT_NVML_API Return nvmlDeviceIsMigDeviceHandle(Device device, std::uint32_t* to) {
  return answer(symbol("nvmlDeviceIsMigDeviceHandle"), device, Reach::slices_too,
                [to](Call& call) { return store(to, call.handle.slice ? 1 : 0); });
}

HALFWATT_NVML_API Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device slice,
                                                                      Device* to) {
  return answer(symbol("nvmlDeviceGetDeviceHandleFromMigDeviceHandle"), slice,
                Reach::slices_too, [to](Call& call) {
                  if (!call.handle.slice) {
                    return Return::invalid_argument;
                  }
                  return store(to, call.session.device({call.handle.card, std::nullopt}));
                });
}

HALFWATT_NVML_API Return nvmlDeviceGetGpuInstanceId(Device slice, std::uint32_t* to) {
  return answer(
      symbol("nvmlDeviceGetGpuInstanceId"), slice, Reach::slices_too, [to](Call& call) {
        return call.handle.slice ? store(to, *call.handle.slice + 1) : Return::not_supported;
      });
}

HALFWATT_NVML_API Return nvmlDeviceGetComputeInstanceId(Device slice, std::uint32_t* to) {
  return answer(
      symbol("nvmlDeviceGetComputeInstanceId"), slice, Reach::slices_too,
      [to](Call& call) { return call.handle.slice ? store(to, 0) : Return::not_supported; });
}

}  // namespace halfwatt::fake_nvml
