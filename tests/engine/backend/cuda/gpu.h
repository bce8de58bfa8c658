#pragma once

#include <gtest/gtest.h>

#include "engine/backend/cuda/cuda_backend.h"

namespace halfwatt {

inline std::unique_ptr<Backend> opened_gpu() {
  auto backend = open_cuda();
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
