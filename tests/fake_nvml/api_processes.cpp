// Who works on a card: the lists in their three layouts, and what each takes of it.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "fake_nvml/library.h"
#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

constexpr std::uint32_t kCompute = 0;
constexpr std::uint32_t kGraphics = 1;
constexpr std::uint32_t kMps = 2;
constexpr std::uint32_t kNoInstance = ~std::uint32_t{0};

ProcessV1 record(const SharedProcess& process, ProcessV1*) {
  return {process.pid, process.bytes};
}
ProcessV2 record(const SharedProcess& process, ProcessV2*) {
  return {process.pid, process.bytes, kNoInstance, kNoInstance};
}
Process535 record(const SharedProcess& process, Process535*) {
  return {process.pid, process.bytes, kNoInstance, kNoInstance, 0};
}

std::vector<SharedProcess> of_kind(Call& call, std::uint32_t kind) {
  std::vector<SharedProcess> all = call.session.state().processes(call.handle.card);
  std::erase_if(all, [kind](const SharedProcess& process) { return process.kind != kind; });
  return all;
}

/// Writes as many records as there are; insufficient_size with their number if `count` is less.
template <class Record>
Return write_records(const std::vector<SharedProcess>& all, std::uint32_t* count, void* to) {
  if (count == nullptr || (*count != 0 && to == nullptr)) {
    return Return::invalid_argument;
  }
  const bool fits = *count >= all.size();
  *count = static_cast<std::uint32_t>(all.size());
  if (!fits) {
    return Return::insufficient_size;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Record one = record(all[i], static_cast<Record*>(nullptr));
    std::memcpy(static_cast<char*>(to) + i * sizeof(Record), &one, sizeof(Record));
  }
  return Return::success;
}

struct Asked {
  std::uint32_t kind;
  int version;
};

Return list(std::size_t symbol, Device device, Asked asked, std::uint32_t* count, void* to) {
  return answer(symbol, device, Reach::slices_too, [=](Call& call) {
    const std::vector<SharedProcess> all = of_kind(call, asked.kind);
    if (asked.version == 1) {
      return write_records<ProcessV1>(all, count, to);
    }
    return asked.version == 3 && call.card().process_records_535
               ? write_records<Process535>(all, count, to)
               : write_records<ProcessV2>(all, count, to);
  });
}

std::uint64_t now_us() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count());
}

/// Those that took any of the card since it was last asked; none of them is not_found.
std::vector<SharedProcess> busy(Call& call) {
  std::vector<SharedProcess> all = call.session.state().processes(call.handle.card);
  std::erase_if(all, [](const SharedProcess& process) {
    return process.sm_percent == 0 && process.memory_percent == 0;
  });
  return all;
}

}  // namespace

HALFWATT_NVML_API Return nvmlDeviceGetComputeRunningProcesses(Device device,
                                                              std::uint32_t* count,
                                                              ProcessV1* to) {
  return list(symbol("nvmlDeviceGetComputeRunningProcesses"), device, {kCompute, 1}, count, to);
}
HALFWATT_NVML_API Return nvmlDeviceGetComputeRunningProcesses_v2(Device device,
                                                                 std::uint32_t* count,
                                                                 ProcessV2* to) {
  return list(symbol("nvmlDeviceGetComputeRunningProcesses_v2"), device, {kCompute, 2}, count,
              to);
}
HALFWATT_NVML_API Return nvmlDeviceGetComputeRunningProcesses_v3(Device device,
                                                                 std::uint32_t* count,
                                                                 ProcessV2* to) {
  return list(symbol("nvmlDeviceGetComputeRunningProcesses_v3"), device, {kCompute, 3}, count,
              to);
}

HALFWATT_NVML_API Return nvmlDeviceGetGraphicsRunningProcesses(Device device,
                                                               std::uint32_t* count,
                                                               ProcessV1* to) {
  return list(symbol("nvmlDeviceGetGraphicsRunningProcesses"), device, {kGraphics, 1}, count,
              to);
}
HALFWATT_NVML_API Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device device,
                                                                  std::uint32_t* count,
                                                                  ProcessV2* to) {
  return list(symbol("nvmlDeviceGetGraphicsRunningProcesses_v2"), device, {kGraphics, 2}, count,
              to);
}
HALFWATT_NVML_API Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device,
                                                                  std::uint32_t* count,
                                                                  ProcessV2* to) {
  return list(symbol("nvmlDeviceGetGraphicsRunningProcesses_v3"), device, {kGraphics, 3}, count,
              to);
}

HALFWATT_NVML_API Return nvmlDeviceGetMPSComputeRunningProcesses(Device device,
                                                                 std::uint32_t* count,
                                                                 ProcessV1* to) {
  return list(symbol("nvmlDeviceGetMPSComputeRunningProcesses"), device, {kMps, 1}, count, to);
}
HALFWATT_NVML_API Return nvmlDeviceGetMPSComputeRunningProcesses_v2(Device device,
                                                                    std::uint32_t* count,
                                                                    ProcessV2* to) {
  return list(symbol("nvmlDeviceGetMPSComputeRunningProcesses_v2"), device, {kMps, 2}, count,
              to);
}
HALFWATT_NVML_API Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device,
                                                                    std::uint32_t* count,
                                                                    ProcessV2* to) {
  return list(symbol("nvmlDeviceGetMPSComputeRunningProcesses_v3"), device, {kMps, 3}, count,
              to);
}

HALFWATT_NVML_API Return nvmlDeviceGetProcessUtilization(Device device,
                                                         ProcessSample* to,
                                                         std::uint32_t* count,
                                                         std::uint64_t /*last_seen_us*/) {
  return answer(
      symbol("nvmlDeviceGetProcessUtilization"), device, Reach::whole_card, [=](Call& call) {
        if (count == nullptr) {
          return Return::invalid_argument;
        }
        const std::vector<SharedProcess> all = busy(call);
        if (to == nullptr || *count < all.size()) {
          *count = static_cast<std::uint32_t>(all.size());
          return all.empty() ? Return::not_found : Return::insufficient_size;
        }
        *count = static_cast<std::uint32_t>(all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
          to[i] = {all[i].pid, now_us(), all[i].sm_percent, all[i].memory_percent, 0, 0};
        }
        return all.empty() ? Return::not_found : Return::success;
      });
}

HALFWATT_NVML_API Return nvmlDeviceGetProcessesUtilizationInfo(Device device, ProcessRows* to) {
  return answer(symbol("nvmlDeviceGetProcessesUtilizationInfo"), device, Reach::whole_card,
                [to](Call& call) {
                  if (to == nullptr) {
                    return Return::invalid_argument;
                  }
                  if (to->version != version_of<ProcessRows>(1)) {
                    return Return::argument_version_mismatch;
                  }
                  const std::vector<SharedProcess> all = busy(call);
                  const bool fits = to->rows != nullptr && to->count >= all.size();
                  to->count = static_cast<std::uint32_t>(all.size());
                  for (std::size_t i = 0; fits && i < all.size(); ++i) {
                    to->rows[i] = {};
                    to->rows[i].timestamp_us = now_us();
                    to->rows[i].pid = all[i].pid;
                    to->rows[i].sm_percent = all[i].sm_percent;
                    to->rows[i].memory_percent = all[i].memory_percent;
                  }
                  if (all.empty()) {
                    return Return::not_found;
                  }
                  return fits ? Return::success : Return::insufficient_size;
                });
}

}  // namespace halfwatt::fake_nvml
