#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

// What the launchers of all kernels take. They only enqueue: nothing waits, nothing allocates,
// and all of them can be captured into a graph.

struct CUstream_st;

namespace halfwatt::cuda {

using Index = std::int64_t;
using Stream = CUstream_st*;

/// Elements in device memory.
struct Elements {
  std::byte* data = nullptr;
  DType dtype = DType::f32;

  explicit operator bool() const { return data != nullptr; }
};

}  // namespace halfwatt::cuda
