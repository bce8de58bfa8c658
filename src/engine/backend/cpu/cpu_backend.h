#pragma once

#include <memory>
#include <string>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/kernels/isa.h"

namespace halfwatt {

struct CpuOptions {
  std::string name = "cpu";  ///< "cpu:1" of a second one
  int threads = 0;           ///< 0: as many as affinity and the cgroup's quota allow
};

/// The processors of this machine as a device: fp32, bf16 and fp64 for real, everything
/// narrower stored and rounded in its format and computed in fp32. Errors: HALFWATT_ISA names
/// no ISA of this machine.
Result<std::unique_ptr<Backend>> open_cpu(const CpuOptions& options = {});

}  // namespace halfwatt
