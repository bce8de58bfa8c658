#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/exec/cpu_run.h"

// Recorded vectors are held against the CPU by the tests of exec, and against a GPU by those of
// its room: the same tests, in two programs, each of which has its own source for these.

namespace halfwatt {

std::unique_ptr<Backend> vectors_backend();
/// Why the device is not there; empty if it is.
std::string why_no_vectors();
/// The widest format that it computes in: f64 or f32.
DType widest_float();
/// How far a number may be off: on the CPU, whose functions are right to the last bit or so, or
/// on a GPU, where they are to two or three.
double allowed(double on_cpu, double on_gpu);

/// Formats of numbers from the widest on.
inline std::vector<DType> all_floats() {
  std::vector<DType> all = {DType::f32, DType::bf16, DType::f16};
  if (widest_float() == DType::f64) {
    all.insert(all.begin(), DType::f64);
  }
  return all;
}

/// Tests of vectors; without the device they are skipped, and say why.
class OnVectorsDevice : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string reason = why_no_vectors();
    if (!reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
};

}  // namespace halfwatt
