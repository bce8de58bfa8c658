#pragma once

#include <gtest/gtest.h>

#include "engine/backend/cuda/cuda_backend.h"

namespace halfwatt {

/// The same bits in every run, whatever was the fastest.
inline CudaOptions repeatable() {
  CudaOptions options;
  options.deterministic = true;
  return options;
}

inline std::unique_ptr<Backend> opened_gpu(const CudaOptions& options = repeatable()) {
  auto backend = open_cuda(options);
  EXPECT_TRUE(backend) << backend.error().message;
  return std::move(*backend);
}

/// Tests that need a GPU; without one they are skipped, and say why.
class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string reason = why_no_cuda();
    if (!reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
};

}  // namespace halfwatt
