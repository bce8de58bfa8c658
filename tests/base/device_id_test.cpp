#include "base/device_id.h"

#include <gtest/gtest.h>

#include <string>

namespace halfwatt {
namespace {

TEST(DeviceId, reads_back_the_text_it_writes) {
  for (const std::string text : {"gpu:0", "gpu:17", "GPU-8a3c2c1e-5f0e-4d1c-9a53-0123456789ab",
                                 "0000:65:00.0", "cpu", "sim:rtx3090", "sim:my/file.csv"}) {
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

TEST(DeviceId, reads_a_pci_id_as_every_tool_writes_it) {
  for (const std::string text : {"65:00.0", "0000:65:00.0", "00000000:65:00.0"}) {
    EXPECT_EQ(DeviceId::parse(text)->kind, DeviceId::Kind::gpu_pci) << text;
    EXPECT_EQ(DeviceId::parse(text)->text(), "0000:65:00.0") << text;
  }
  EXPECT_EQ(DeviceId::parse("0001:C1:00.0")->text(), "0001:c1:00.0");
  EXPECT_EQ(DeviceId::parse("00010000:C1:00.0")->text(), "10000:c1:00.0");
}

TEST(DeviceId, refuses_a_slice_of_a_card_and_names_what_has_power) {
  const auto id = DeviceId::parse("MIG-8a3c2c1e");
  ASSERT_FALSE(id);
  EXPECT_NE(id.error().message.find("needed its card"), std::string::npos);
}

TEST(DeviceId, refuses_what_names_no_device_and_says_what_would) {
  for (const std::string text :
       {"", "gpu", "gpu:", "gpu:x", "gpu:-1", "gpu:12345", "sim:", "CPU", "0000:65:00.1",
        "65:00", "1:2:3:4.0", "00000000f:65:00.0", "zz:00.0", ".0"}) {
    const auto id = DeviceId::parse(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().kind, ErrorKind::bad_input);
    EXPECT_NE(id.error().message.find("needed gpu:N"), std::string::npos);
  }
}

}  // namespace
}  // namespace halfwatt
