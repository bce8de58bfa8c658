#pragma once

#include <filesystem>
#include <string>

#include "cli/program.h"
#include "fake_nvml/fake_nvml.h"

namespace halfwatt {

/// The built program on a machine of fake cards, where it sees all processes.
struct FakeCards {
  FakeNvml fake;
  Folder folder;

  explicit FakeCards(fake_nvml::Script script) : fake(std::move(script)) {
    const std::filesystem::path namespaces = folder.path("root/proc/self/ns");
    std::filesystem::create_directories(namespaces);
    std::filesystem::create_symlink("pid:[4026531836]", namespaces / "pid");
  }
  explicit FakeCards(std::size_t cards) : FakeCards(FakeNvml::cards(cards)) {}

  /// `environment`: what is set for it, and what it hands on: "CUDA_VISIBLE_DEVICES=1".
  Outcome run(const std::string& words, const std::string& environment = "") const {
    std::string before = "env -u CUDA_VISIBLE_DEVICES -u CUDA_DEVICE_ORDER HALFWATT_ROOT='" +
                         folder.path("root") + "' " + environment;
    for (const std::string& each : fake.environment()) {
      before += " '" + each + "'";
    }
    return run_program(words, before);
  }
  /// Options of every command that holds limits.
  std::string state() const { return " --state-dir '" + folder.path("state") + "' "; }
};

/// The limits that the program wrote to a card, in the order in which it did, each once where
/// it was written again.
inline std::vector<std::uint32_t> limits_written(FakeNvml& fake, std::size_t card) {
  std::vector<std::uint32_t> limits;
  for (const LimitWrite& write : fake.writes(card)) {
    if (limits.empty() || limits.back() != write.asked_mw) {
      limits.push_back(write.asked_mw);
    }
  }
  return limits;
}

}  // namespace halfwatt
