#include "base/device_id.h"

#include <gtest/gtest.h>

#include <string>

namespace halfwatt {
namespace {

TEST(DeviceId, reads_back_the_text_it_writes) {
  for (const std::string text : {"gpu:0", "gpu:17", "GPU-8a3c2c1e-5f0e-4d1c-9a53-0123456789ab",
                                 "cpu", "sim:rtx3090", "sim:my/file.csv"}) {
    const auto id = DeviceId::parse(text);
    ASSERT_TRUE(id) << text << ": " << id.error().message;
    EXPECT_EQ(id->text(), text);
  }
}

TEST(DeviceId, tells_the_kinds_apart) {
  EXPECT_EQ(DeviceId::parse("gpu:3")->kind, DeviceId::Kind::gpu_index);
  EXPECT_EQ(DeviceId::parse("GPU-1")->kind, DeviceId::Kind::gpu_uuid);
  EXPECT_EQ(DeviceId::parse("cpu")->kind, DeviceId::Kind::cpu);
  EXPECT_EQ(DeviceId::parse("sim:rtx3090")->kind, DeviceId::Kind::simulated);
}

TEST(DeviceId, refuses_what_names_no_device_and_says_what_would) {
  for (const std::string text :
       {"", "gpu", "gpu:", "gpu:x", "gpu:-1", "gpu:12345", "sim:", "CPU"}) {
    const auto id = DeviceId::parse(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().kind, ErrorKind::bad_input);
    EXPECT_NE(id.error().message.find("needed gpu:N"), std::string::npos);
  }
}

}  // namespace
}  // namespace halfwatt
