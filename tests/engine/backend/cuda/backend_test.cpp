#include <gtest/gtest.h>

#include "base/failure.h"
#include "engine/backend/cuda/gpu.h"

namespace halfwatt {
namespace {

// Of a machine without a GPU, or a program without GPU code.
TEST(Cuda, says_in_one_line_why_there_is_no_gpu) {
  const std::string reason = why_no_cuda();
  if (reason.empty()) {
    GTEST_SKIP() << "there is one";
  }
  EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
  const auto backend = open_cuda();
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().kind, ErrorKind::device);
}

class CudaDevice : public OnGpu {};

TEST_F(CudaDevice, refuses_a_gpu_that_is_not_there) {
  CudaOptions options;
  options.device = 999;
  const auto backend = open_cuda(options);
  ASSERT_FALSE(backend);
  EXPECT_NE(backend.error().message.find("gpu:999: this machine has"), std::string::npos)
      << backend.error().message;
}

TEST_F(CudaDevice, counts_its_memory_and_says_how_much_it_lacks) {
  const auto backend = opened_gpu();
  const std::size_t before = backend->allocated();
  {
    const Buffer buffer = backend->allocate(1 << 20);
    EXPECT_EQ(backend->allocated(), before + (1 << 20));
  }
  EXPECT_EQ(backend->allocated(), before);
  try {
    backend->allocate(std::size_t{1} << 50);
    FAIL() << "no device has a pebibyte";
  } catch (const Failure& failure) {
    EXPECT_NE(failure.error().message.find("memory left"), std::string::npos);
  }
}

TEST_F(CudaDevice, says_what_it_computes_with) {
  const auto backend = opened_gpu();
  const auto& arithmetic = backend->target().arithmetic;
  EXPECT_NE(arithmetic.at("gpu"), "");
  EXPECT_EQ(arithmetic.at("products").find("cuBLASLt "), 0U);
  RecordProperty("libraries", arithmetic.at("products"));
}

TEST_F(CudaDevice, gives_back_what_was_copied_to_it) {
  const auto backend = opened_gpu();
  std::vector<std::byte> bytes(1000);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<std::byte>(at * 7);
  }
  const Buffer buffer = backend->allocate(bytes.size());
  backend->upload(buffer.data(), bytes);
  std::vector<std::byte> back(bytes.size());
  backend->download(back, buffer.data());
  EXPECT_EQ(back, bytes);
}

}  // namespace
}  // namespace halfwatt
