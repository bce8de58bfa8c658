#include "device/devices.h"

#include <gtest/gtest.h>

#include <fstream>

#include "device/fake_machine.h"

namespace halfwatt {
namespace {

DeviceId id(std::string_view text) { return *DeviceId::parse(text); }

/// Cards whose order in NVML is not that of the bus.
fake_nvml::Script three_cards() {
  fake_nvml::Script script = FakeNvml::cards(3);
  script.cards[0].uuid = "GPU-aa11";
  script.cards[1].uuid = "GPU-aa22";
  script.cards[2].uuid = "GPU-bb33";
  script.cards[0].pci_bus_id = "00000000:C1:00.0";
  script.cards[1].pci_bus_id = "00000000:17:00.0";
  return script;
}

void add_cpu(const FakeMachine& machine) {
  const auto zone = machine.root() / "sys/class/powercap/intel-rapl:0";
  std::filesystem::create_directories(zone);
  std::ofstream(zone / "name") << "package-0\n";
  std::ofstream(zone / "energy_uj") << "0\n";
}

TEST(DeviceList, resolves_every_name_of_a_card_to_its_uuid) {
  const FakeMachine machine(three_cards());
  const DeviceList list = DeviceList::look(machine.places());
  for (const char* name : {"gpu:1", "GPU-aa22", "0000:17:00.0", "17:00.0"}) {
    const auto found = list.find(id(name));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->id, (DeviceId{DeviceId::Kind::gpu_uuid, "GPU-aa22"})) << name;
    EXPECT_EQ(found->index, 1U);
  }
  EXPECT_EQ(list.find(id("GPU-bb"))->id.name, "GPU-bb33");
  const auto several = list.find(id("GPU-aa"));
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().message.find("2 cards begin like that"), std::string::npos);
}

TEST(DeviceList, opens_the_same_card_after_indices_changed) {
  std::string uuid;
  {
    const FakeMachine machine(three_cards());
    uuid = DeviceList::look(machine.places()).find(id("gpu:0"))->id.name;
  }
  fake_nvml::Script swapped = three_cards();
  std::swap(swapped.cards[0], swapped.cards[2]);
  const FakeMachine machine(swapped);
  const SteadyClock clock;
  const DeviceList list = DeviceList::look(machine.places());
  const auto device = list.open({DeviceId::Kind::gpu_uuid, uuid}, clock);
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ((*device)->info().id.name, uuid);
  EXPECT_EQ((*device)->info().pci, "0000:c1:00.0");
}

TEST(DeviceList, selects_what_a_list_names_in_its_order) {
  const FakeMachine machine(three_cards());
  add_cpu(machine);
  const DeviceList list = DeviceList::look(machine.places());
  const auto some = list.select("gpu:2,cpu,GPU-aa11");
  ASSERT_TRUE(some) << some.error().message;
  ASSERT_EQ(some->size(), 3U);
  EXPECT_EQ((*some)[0].id.name, "GPU-bb33");
  EXPECT_EQ((*some)[1].id.kind, DeviceId::Kind::cpu);
  EXPECT_EQ((*some)[2].id.name, "GPU-aa11");
  EXPECT_EQ(list.select("all")->size(), 4U);
}

TEST(DeviceList, refuses_a_list_with_one_clear_line) {
  const FakeMachine machine(three_cards());
  const DeviceList list = DeviceList::look(machine.places());
  for (const auto& [text, why] :
       {std::pair<std::string_view, std::string_view>{"gpu:0,GPU-aa11", "named twice"},
        {"gpu:7", "--device gpu:7: there is none"},
        {"gpu:0,", "not a device"},
        {"", "not a device"},
        {"all,gpu:0", "not a device"},
        {"sim:rtx3090", "simulated"},
        {"0000:99:00.0", "there is none"},
        {"cpu", "no energy counter"}}) {
    const auto chosen = list.select(text);
    ASSERT_FALSE(chosen) << text;
    EXPECT_NE(chosen.error().message.find(why), std::string::npos) << chosen.error().message;
    EXPECT_EQ(chosen.error().message.find('\n'), std::string::npos);
  }
}

TEST(DeviceList, says_why_there_is_nothing) {
  const FakeMachine machine(one_fault("nvmlInit*", 9));
  const DeviceList list = DeviceList::look(machine.places());
  EXPECT_TRUE(list.devices().empty());
  EXPECT_EQ(list.absent().size(), 2U);
  for (const std::string_view text : {"all", "gpu:0"}) {
    const auto chosen = list.select(text);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().kind, ErrorKind::device);
    EXPECT_NE(chosen.error().message.find("driver is not loaded"), std::string::npos) << text;
  }
}

TEST(DeviceList, shows_a_card_without_access_and_does_not_open_it) {
  fake_nvml::Script script = one_fault("nvmlDeviceGetHandleByIndex*", 4);
  script.cards = three_cards().cards;
  script.faults[0].card = 1;
  const FakeMachine machine(script);
  const DeviceList list = DeviceList::look(machine.places());
  ASSERT_EQ(list.devices().size(), 3U);
  const SteadyClock clock;
  const auto device = list.open(id("gpu:1"), clock);
  ASSERT_FALSE(device);
  EXPECT_NE(device.error().message.find("no permission"), std::string::npos);
  EXPECT_EQ(list.select("all")->size(), 2U);
  EXPECT_TRUE(list.open(id("gpu:2"), clock));
}

TEST(DeviceList, opens_a_processor) {
  const FakeMachine machine(one_fault("nvmlInit*", 9));
  add_cpu(machine);
  const SteadyClock clock;
  const DeviceList list = DeviceList::look(machine.places());
  const auto cpu = list.open(id("cpu"), clock);
  ASSERT_TRUE(cpu) << cpu.error().message;
  EXPECT_TRUE((*cpu)->energy());
  EXPECT_FALSE(list.open_card(id("cpu")));
}

}  // namespace
}  // namespace halfwatt
