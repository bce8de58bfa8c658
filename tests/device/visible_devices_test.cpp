#include "device/visible_devices.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

NvmlEntry card(unsigned index, std::string uuid, std::string pci, std::string name) {
  NvmlEntry entry;
  entry.index = index;
  entry.uuid = std::move(uuid);
  entry.pci = std::move(pci);
  entry.name = std::move(name);
  return entry;
}

const std::vector<NvmlEntry> kAlike = {card(0, "GPU-a1", "0000:65:00.0", "H200"),
                                       card(1, "GPU-a2", "0000:17:00.0", "H200"),
                                       card(2, "GPU-b1", "0000:e3:00.0", "H200")};
const std::vector<NvmlEntry> kMixed = {card(0, "GPU-slow", "0000:17:00.0", "T4"),
                                       card(1, "GPU-fast", "0000:65:00.0", "H200")};

VisibleDevices visible(const std::vector<NvmlEntry>& cards,
                       std::optional<std::string> devices,
                       std::optional<std::string> order = {}) {
  const auto result = visible_devices(cards, {std::move(devices), std::move(order)});
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

std::vector<std::string> uuids(const VisibleDevices& devices) {
  std::vector<std::string> all;
  for (const VisibleDevice& each : devices.devices) {
    all.push_back(each.uuid);
  }
  return all;
}

using Uuids = std::vector<std::string>;

TEST(VisibleDevices, are_all_cards_in_the_order_of_the_bus_where_nothing_is_said) {
  EXPECT_EQ(uuids(visible(kAlike, std::nullopt)), (Uuids{"GPU-a2", "GPU-a1", "GPU-b1"}));
  EXPECT_EQ(visible(kAlike, std::nullopt).doubt, std::nullopt);
}

TEST(VisibleDevices, are_numbered_by_the_bus_and_not_as_nvml_lists_them) {
  EXPECT_EQ(uuids(visible(kAlike, "1,0")), (Uuids{"GPU-a1", "GPU-a2"}));
  EXPECT_EQ(uuids(visible(kAlike, " 2 , 0 ")), (Uuids{"GPU-b1", "GPU-a2"}));
}

TEST(VisibleDevices, are_in_doubt_where_cards_differ_and_the_fastest_comes_first) {
  const VisibleDevices devices = visible(kMixed, "0");
  ASSERT_TRUE(devices.doubt);
  EXPECT_NE(devices.doubt->find("CUDA_DEVICE_ORDER=PCI_BUS_ID"), std::string::npos);
  EXPECT_TRUE(visible(kMixed, "0", "FASTEST_FIRST").doubt);
  EXPECT_TRUE(visible(kMixed, std::nullopt).doubt);
  EXPECT_FALSE(visible(kMixed, "0", "PCI_BUS_ID").doubt);
  EXPECT_EQ(uuids(visible(kMixed, "0", "PCI_BUS_ID")), Uuids{"GPU-slow"});
}

TEST(VisibleDevices, are_certain_by_uuid_or_its_unique_beginning) {
  EXPECT_EQ(uuids(visible(kMixed, "GPU-fast")), Uuids{"GPU-fast"});
  EXPECT_FALSE(visible(kMixed, "GPU-fast").doubt);
  EXPECT_EQ(uuids(visible(kAlike, "GPU-b,GPU-a1")), (Uuids{"GPU-b1", "GPU-a1"}));
}

TEST(VisibleDevices, end_at_the_first_index_that_is_none_as_in_cuda) {
  EXPECT_EQ(uuids(visible(kAlike, "")), Uuids{});
  EXPECT_EQ(uuids(visible(kAlike, "-1")), Uuids{});
  EXPECT_EQ(uuids(visible(kAlike, "0,7,1")), Uuids{"GPU-a2"});
  EXPECT_EQ(uuids(visible(kAlike, "NoDevFiles")), Uuids{});
}

TEST(VisibleDevices, name_what_they_do_not_find) {
  for (const auto& [id, why] : {std::pair<std::string, std::string>{"GPU-x", "no card here"},
                                {"GPU-a", "several cards"},
                                {"MIG-x", "no MIG slice"},
                                {"MIG-GPU-x/1/0", "no card here"},
                                {"0,GPU-a2", "named twice"}}) {
    const auto result = visible_devices(kAlike, {id, std::nullopt});
    ASSERT_FALSE(result) << id;
    EXPECT_EQ(result.error().kind, ErrorKind::device);
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  }
}

TEST(VisibleDevices, know_the_card_of_a_slice) {
  std::vector<NvmlEntry> cards = kAlike;
  cards[2].slices = {"MIG-11", "MIG-22"};
  const VisibleDevices devices = visible(cards, "MIG-2,MIG-1");
  ASSERT_EQ(devices.devices.size(), 2U);
  EXPECT_EQ(devices.devices[0].uuid, "GPU-b1");
  EXPECT_EQ(devices.devices[0].slice, "MIG-22");
  EXPECT_EQ(devices.devices[1].slice, "MIG-11");
  EXPECT_EQ(visible(cards, "MIG-GPU-a1/5/0").devices[0].uuid, "GPU-a1");
}

TEST(VisibleDevices, leave_out_cards_that_the_driver_gives_no_access_to) {
  std::vector<NvmlEntry> cards = kAlike;
  cards.push_back({});
  EXPECT_EQ(visible(cards, std::nullopt).devices.size(), 3U);
}

}  // namespace
}  // namespace halfwatt
