#include "cli/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace halfwatt {
namespace {

// The value behind `key` in a file of "key : value" lines; nullopt if there is none.
std::optional<std::string> value_of(const std::filesystem::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) {
      const std::size_t start = line.find_first_not_of(" \t", colon + 1);
      return start == std::string::npos ? "" : line.substr(start);
    }
  }
  return std::nullopt;
}

unsigned count_threads(const std::filesystem::path& cpuinfo) {
  std::ifstream in(cpuinfo);
  unsigned threads = 0;
  for (std::string line; std::getline(in, line);) {
    threads += line.starts_with("processor") ? 1 : 0;
  }
  return threads;
}

// What the loaded driver has of each card, for machines whose NVML does not answer.
std::vector<std::string> gpus_of_driver(const std::filesystem::path& root) {
  std::vector<std::string> gpus;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(root / "proc/driver/nvidia/gpus", none)) {
    gpus.push_back(value_of(entry.path() / "information", "Model").value_or("unknown"));
  }
  std::sort(gpus.begin(), gpus.end());
  return gpus;
}

}  // namespace

Machine look_at_machine(const DevicePlaces& places) {
  Machine machine;
  const std::filesystem::path cpuinfo = places.root / "proc/cpuinfo";
  machine.cpu = value_of(cpuinfo, "model name").value_or("");
  machine.threads = count_threads(cpuinfo);
  const DeviceList list = DeviceList::look(places);
  for (const NvmlEntry& card : list.cards()) {
    const std::string name = card.name.empty() ? "a card of unknown model" : card.name;
    machine.gpus.push_back(fmt::format("{} (gpu:{})", name, card.index));
  }
  if (machine.gpus.empty()) {
    machine.gpus = gpus_of_driver(places.root);
    if (!machine.gpus.empty() && !list.absent().empty()) {
      machine.trouble = list.absent().front().message;
    }
  }
  return machine;
}

std::string next_command(const Machine& machine, const std::string& program) {
  if (machine.gpus.empty()) {
    return program + " tune --workload study:train-amp-fp16 --report tune.html";
  }
  return program + (machine.trouble ? " analyze yours.csv --report yours.html"
                                    : " tune --report tune.html -- python train.py");
}

std::string overview(const Machine& machine, const std::string& program) {
  std::string text = fmt::format(
      "This machine: {}{}\n", machine.cpu.empty() ? "a CPU of unknown model" : machine.cpu,
      machine.threads > 0 ? fmt::format(", {} threads", machine.threads) : "");
  if (machine.gpus.empty()) {
    text += "No NVIDIA GPU with a loaded driver is seen here.\n";
  }
  for (const std::string& gpu : machine.gpus) {
    text += fmt::format("GPU: {}\n", gpu);
  }
  if (machine.trouble) {
    text += fmt::format("{}\n", *machine.trouble);
  }
  if (machine.trouble) {
    text +=
        "Until then halfwatt judges what you measured: a CSV file with the columns\n"
        "power_limit_w and ms_per_batch, one row a limit.\n";
  } else if (!machine.gpus.empty()) {
    text +=
        "halfwatt finds the best power limit for a command of yours (in the place of\n"
        "`python train.py`): it runs a throw-away copy, and puts the limit back.\n";
  }
  return text + fmt::format("Try next:  {}\n", next_command(machine, program));
}

}  // namespace halfwatt
