#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/backend/backend.h"

namespace halfwatt {

struct CudaOptions {
  /// As the CUDA runtime numbers those that it shows, which need not be NVML's numbers.
  int device = 0;
  /// Where it is on the bus, `0000:65:00.0`; if it is there, it says which device is meant.
  std::string pci;
  /// Runs the steps of a plan one by one and waits for each, so that each can be timed. Else
  /// they are one graph, which is launched whole.
  bool step_by_step = false;
  /// Takes the algorithms that the library names first, which gives the same bits on the same
  /// GPU and libraries. Else they are timed, and those that were the fastest are taken.
  bool deterministic = false;
  /// Where the fastest ones are kept, so that the next run takes the same: nullopt keeps none.
  std::optional<std::filesystem::path> choices = {};
};

/// One NVIDIA GPU as a device. Errors (device): this program was built without CUDA; there is
/// no driver, or one that is too old; there is no such GPU, or one that this program has no
/// code for; no cuBLASLt is found.
Result<std::unique_ptr<Backend>> open_cuda(const CudaOptions& options = {});

/// Why open_cuda() would not give a GPU here; empty if it would. For those who can do without.
std::string why_no_cuda();

}  // namespace halfwatt
