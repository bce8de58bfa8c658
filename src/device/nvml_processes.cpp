#include "device/nvml_processes.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace halfwatt {
namespace {

constexpr std::size_t kRecord = sizeof(nvml::ProcessInfo);
constexpr std::size_t kOldRecord = 16;
// Drivers 535 before .98 write this much for each process through the same function.
constexpr std::size_t kLongRecord = 32;
constexpr std::uint32_t kLargestPid = 1U << 22U;  // PID_MAX_LIMIT of 64-bit Linux
constexpr char kUntouched = '\xa5';
constexpr std::uint32_t kMostProcesses = 65536;

// One process more than fits may have started since the count was told.
constexpr std::uint32_t kSlack = 8;

struct Ask {
  nvml::Processes* call;
  std::size_t record;  ///< bytes of one, as declared
};

Ask newest(const nvml::Calls& calls) {
  if (calls.processes_v3 != nullptr) {
    return {calls.processes_v3, kRecord};
  }
  return calls.processes_v2 != nullptr ? Ask{calls.processes_v2, kRecord}
                                       : Ask{calls.processes_v1, kOldRecord};
}

// As declared, unless more than that was written.
std::size_t record_size(const std::vector<char>& bytes, std::size_t count, std::size_t record) {
  const auto behind = bytes.begin() + static_cast<std::ptrdiff_t>(count * record);
  const bool untouched =
      std::all_of(behind, bytes.end(), [](char byte) { return byte == kUntouched; });
  return untouched ? record : kLongRecord;
}

CardProcesses parse(const std::vector<char>& bytes, std::size_t count, std::size_t record) {
  CardProcesses processes;
  const std::size_t size = record_size(bytes, count, record);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t pid = 0;
    std::memcpy(&pid, bytes.data() + i * size, sizeof(pid));
    if (pid == 0 || pid > kLargestPid) {
      processes.whole = false;
      continue;
    }
    processes.pids.push_back(static_cast<pid_t>(pid));
  }
  return processes;
}

}  // namespace

std::optional<CardProcesses> read_processes(const nvml::Calls& calls,
                                            nvml::DeviceHandle card,
                                            bool& lost) {
  const Ask ask = newest(calls);
  if (ask.call == nullptr) {
    return std::nullopt;
  }
  // Most often there is one process or none: room for a few spares the call that counts.
  std::uint32_t room = kSlack;
  for (int attempt = 0; attempt < 3 && room <= kMostProcesses; ++attempt) {
    std::vector<char> bytes(room * kLongRecord, kUntouched);
    std::uint32_t count = room;
    const nvml::Return code = ask.call(card, &count, bytes.data());
    if (code == nvml::kSuccess && count <= room) {
      return parse(bytes, count, ask.record);
    }
    if (code != nvml::kInsufficientSize) {
      lost = lost || code == nvml::kGpuIsLost;
      return std::nullopt;
    }
    room = count + kSlack;
  }
  return std::nullopt;
}

bool sees_all_processes(const std::filesystem::path& root) {
  // PROC_PID_INIT_INO of the kernel: the number of the first pid namespace.
  constexpr std::string_view kFirst = "pid:[4026531836]";
  std::error_code failed;
  const auto link = std::filesystem::read_symlink(root / "proc/self/ns/pid", failed);
  return !failed && link.string() == kFirst;
}

bool descends_from(pid_t pid, pid_t ancestor) {
  constexpr int kDeepest = 1000;  // a parent that changes while we walk must not make a circle
  for (int i = 0; i < kDeepest && pid > 0; ++i) {
    if (pid == ancestor) {
      return true;
    }
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    // "PID (NAME) STATE PARENT ...", and the name may hold anything.
    const auto end_of_name = line.rfind(')');
    char state = 0;
    pid = 0;
    if (end_of_name != std::string::npos) {
      std::istringstream(line.substr(end_of_name + 1)) >> state >> pid;
    }
  }
  return false;
}

std::optional<int> count_foreign(const CardProcesses& processes,
                                 const std::function<bool(pid_t)>& own,
                                 bool sees_all) {
  const auto foreign = std::count_if(processes.pids.begin(), processes.pids.end(),
                                     [&own](pid_t pid) { return !own || !own(pid); });
  // Under other numbers, what looks foreign may be ours; what is not listed may be hidden.
  if (!sees_all || (foreign == 0 && !processes.whole)) {
    return std::nullopt;
  }
  return static_cast<int>(foreign);
}

}  // namespace halfwatt
