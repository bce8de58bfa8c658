#include "engine/backend/cuda/device.h"

#include <gtest/gtest.h>

#include "base/failure.h"

namespace halfwatt {
namespace {

std::string said(cudaError_t error) {
  try {
    cuda::check(error, "run");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::device);
    return failure.error().message;
  }
  return "nothing";
}

TEST(DeviceError, is_one_line_with_what_it_means_and_what_helps) {
  const struct {
    cudaError_t error;
    const char* word;
  } all[] = {{cudaErrorECCUncorrectable, "not to be trusted"},
             {cudaErrorIllegalAddress, "xid"},
             {cudaErrorLaunchFailure, "a kernel failed"},
             {cudaErrorUnknown, "fell off the bus"},
             {cudaErrorDevicesUnavailable, "another process"},
             {cudaErrorMemoryAllocation, "nvidia-smi"},
             {cudaErrorSystemDriverMismatch, "reboot"}};
  for (const auto& [error, word] : all) {
    const std::string message = said(error);
    EXPECT_EQ(message.find("run: "), 0U) << message;
    EXPECT_NE(message.find(word), std::string::npos) << message;
    EXPECT_NE(message.find(cudaGetErrorName(error)), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_EQ(said(cudaErrorInvalidValue), "run: invalid argument (cudaErrorInvalidValue)");
  EXPECT_EQ(said(cudaSuccess), "nothing");
}

}  // namespace
}  // namespace halfwatt
