#include <gtest/gtest.h>

#include <cstring>

#include "fake_nvml/nvml_client.h"

namespace halfwatt {
namespace {

using fake_nvml::Device;
using fake_nvml::Return;
using fake_nvml::Script;

TEST(FakeNvmlIdentity, finds_a_card_by_index_uuid_and_pci_address) {
  FakeNvml fake(FakeNvml::cards(3));
  fake.enter_environment();
  const NvmlClient client;
  std::uint32_t count = 0;
  ASSERT_EQ(client.call("nvmlDeviceGetCount_v2", &count), Return::success);
  EXPECT_EQ(count, 3U);
  Device by_uuid = nullptr;
  Device by_pci = nullptr;
  const std::string uuid = fake.card(2).uuid;
  EXPECT_EQ(client.call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &by_uuid), Return::success);
  EXPECT_EQ(client.call("nvmlDeviceGetHandleByPciBusId_v2",
                        static_cast<const char*>("0000:03:00.0"), &by_pci),
            Return::success);
  EXPECT_EQ(by_uuid, client.device(2));
  EXPECT_EQ(by_pci, client.device(2));
  EXPECT_EQ(client.text("nvmlDeviceGetUUID", by_uuid), uuid);
  EXPECT_EQ(client.call("nvmlDeviceGetHandleByUUID", static_cast<const char*>("GPU-nobody"),
                        &by_uuid),
            Return::not_found);
}

TEST(FakeNvmlIdentity, tells_the_parts_of_a_pci_address) {
  Script script = FakeNvml::cards(1);
  script.cards[0].pci_bus_id = "00000001:C3:00.0";
  FakeNvml fake(script);
  fake.enter_environment();
  const auto info = NvmlClient().get<fake_nvml::PciInfo>("nvmlDeviceGetPciInfo_v3");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->domain, 1U);
  EXPECT_EQ(info->bus, 0xc3U);
  EXPECT_STREQ(info->bus_id, "00000001:C3:00.0");
  EXPECT_STREQ(info->bus_id_legacy, "0001:C3:00.0");
}

TEST(FakeNvmlIdentity, counts_inits_and_refuses_handles_of_an_earlier_session) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  const Device device = client.device();
  std::uint32_t mode = 0;
  ASSERT_EQ(client.call("nvmlInit_v2"), Return::success);
  ASSERT_EQ(client.call("nvmlShutdown"), Return::success);
  EXPECT_EQ(client.call("nvmlDeviceGetPersistenceMode", device, &mode), Return::success);
  ASSERT_EQ(client.call("nvmlShutdown"), Return::success);
  EXPECT_EQ(client.call("nvmlDeviceGetPersistenceMode", device, &mode), Return::uninitialized);
  ASSERT_EQ(client.call("nvmlInit_v2"), Return::success);
  EXPECT_EQ(client.call("nvmlDeviceGetPersistenceMode", device, &mode),
            Return::invalid_argument);
}

TEST(FakeNvmlIdentity, refuses_versioned_structs_of_another_version) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  fake_nvml::MemoryV2 memory{};
  memory.version = 0x01000028;
  EXPECT_EQ(client.call("nvmlDeviceGetMemoryInfo_v2", client.device(), &memory),
            Return::argument_version_mismatch);
  memory.version = 0x02000028;
  EXPECT_EQ(client.call("nvmlDeviceGetMemoryInfo_v2", client.device(), &memory),
            Return::success);
  EXPECT_EQ(memory.total, memory.reserved + memory.free + memory.used);
  fake_nvml::PowerValue value{0x0200000c, 0, 200'000};
  EXPECT_EQ(client.call("nvmlDeviceSetPowerManagementLimit_v2", client.device(), &value),
            Return::success);
  EXPECT_EQ(client.limit_mw(), 200'000U);
}

TEST(FakeNvmlIdentity, says_insufficient_size_for_a_place_too_small) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  char small[4];
  EXPECT_EQ(client.call("nvmlDeviceGetName", client.device(), &small[0], 4U),
            Return::insufficient_size);
}

TEST(FakeNvmlIdentity, gives_slices_of_mig_no_power_and_no_limit) {
  Script script = FakeNvml::cards(1);
  script.cards[0].mig_enabled = true;
  script.cards[0].mig_slices = 2;
  FakeNvml fake(script);
  fake.enter_environment();
  const NvmlClient client;
  Device slice = nullptr;
  ASSERT_EQ(client.call("nvmlDeviceGetMigDeviceHandleByIndex", client.device(), 1U, &slice),
            Return::success);
  const std::string uuid = client.text("nvmlDeviceGetUUID", slice);
  EXPECT_EQ(uuid.substr(0, 4), "MIG-");
  Device again = nullptr;
  EXPECT_EQ(client.call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &again), Return::success);
  EXPECT_EQ(again, slice);
  EXPECT_EQ(client.call("nvmlDeviceSetPowerManagementLimit", slice, 200'000U),
            Return::not_supported);
  std::uint64_t mj = 0;
  EXPECT_EQ(client.call("nvmlDeviceGetTotalEnergyConsumption", slice, &mj),
            Return::not_supported);
  Device whole = nullptr;
  EXPECT_EQ(client.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", slice, &whole),
            Return::success);
  EXPECT_EQ(whole, client.device());
}

}  // namespace
}  // namespace halfwatt
