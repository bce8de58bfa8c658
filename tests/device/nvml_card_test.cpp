#include "device/nvml_card.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "device/fake_machine.h"

namespace halfwatt {
namespace {

constexpr double kUnknown = -1;

double value(const Sample& sample, SignalId id) { return sample[id].value_or(kUnknown); }

/// One sample of a machine's first card.
Sample read(const FakeMachine& machine) {
  auto card = machine.open_card();
  EXPECT_TRUE(card) << card.error().message;
  auto sample = (*card)->read();
  EXPECT_TRUE(sample) << sample.error().message;
  return *sample;
}

std::set<std::string_view> unknown_in(const Sample& sample) {
  std::set<std::string_view> names;
  for (const Signal& signal : kSignals) {
    if (!sample[signal.id]) {
      names.insert(signal.name);
    }
  }
  return names;
}

fake_nvml::Script ecc_card() {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].ecc = true;
  return script;
}

TEST(NvmlCard, asks_a_quick_reading_only_for_fields_that_the_driver_has_at_hand) {
  // On an H200 fields 75, 197, 198, 270 and 271 take 0.5 to 1 ms each.
  fake_nvml::Script script = FakeNvml::cards(1);
  for (const int field : {75, 197, 198, 270, 271}) {
    fake_nvml::Fault lost;
    lost.symbol = "nvmlDeviceGetFieldValues";
    lost.field = field;
    lost.code = 15;
    script.faults.push_back(lost);
  }
  const FakeMachine machine(script);
  auto card = machine.open_card();
  ASSERT_TRUE(card);
  EXPECT_TRUE((*card)->read_quickly());
  EXPECT_FALSE((*card)->read());
}

TEST(NvmlCard, tells_what_does_not_change) {
  const FakeMachine machine;
  const auto card = machine.open_card();
  ASSERT_TRUE(card) << card.error().message;
  const DeviceInfo& info = (*card)->info();
  EXPECT_EQ(info.id.text(), machine.uuid());
  EXPECT_EQ(info.name, "NVIDIA Fake 3090");
  EXPECT_EQ(info.pci, "0000:01:00.0");
  EXPECT_EQ(info.limits, (LimitRange{Watts(100), Watts(390), Watts(350)}));
  EXPECT_EQ(info.energy_method, EnergyMethod::counter);
  EXPECT_EQ(info.energy_tick, Seconds(0.1));
  EXPECT_FALSE(info.energy_is_checked);
  EXPECT_FALSE(info.simulated);
  EXPECT_FALSE(info.sliced);
}

TEST(NvmlCard, tells_every_signal_of_a_modern_card) {
  const Sample sample = read(FakeMachine(ecc_card()));
  EXPECT_EQ(unknown_in(sample), std::set<std::string_view>{"energy"});  // energy stands apart
  EXPECT_NEAR(value(sample, SignalId::power), 320, 5);
  EXPECT_EQ(value(sample, SignalId::requested_limit), 350);
  EXPECT_EQ(value(sample, SignalId::min_limit), 100);
  EXPECT_EQ(value(sample, SignalId::max_limit), 390);
  EXPECT_EQ(value(sample, SignalId::default_limit), 350);
  EXPECT_EQ(value(sample, SignalId::memory_clock), 9751);
  EXPECT_EQ(value(sample, SignalId::memory_total), 24.0 * (1ULL << 30));
  EXPECT_EQ(value(sample, SignalId::memory_used), 8.0 * (1ULL << 30));
  EXPECT_EQ(value(sample, SignalId::pcie_generation), 4);
  EXPECT_EQ(value(sample, SignalId::pcie_width), 16);
  EXPECT_EQ(value(sample, SignalId::foreign_processes), 0);
}

TEST(NvmlCard, tells_the_same_through_old_symbols_but_for_what_they_lack) {
  const Sample sample = read(FakeMachine(ecc_card(), NvmlVariant::old));
  const std::set<std::string_view> lacking = {"energy", "temperature_margin"};
  EXPECT_EQ(unknown_in(sample), lacking);
  EXPECT_NEAR(value(sample, SignalId::power), 320, 5);
}

TEST(NvmlCard, tells_what_functions_tell_where_there_are_no_fields) {
  const FakeMachine machine(ecc_card(), NvmlVariant::ancient);
  const Sample sample = read(machine);
  EXPECT_NEAR(value(sample, SignalId::power), 320, 5);
  EXPECT_EQ(value(sample, SignalId::requested_limit), 350);
  EXPECT_EQ(value(sample, SignalId::enforced_limit), 350);
  EXPECT_NE(value(sample, SignalId::sm_clock), kUnknown);
  EXPECT_NE(value(sample, SignalId::temperature), kUnknown);
  EXPECT_NE(value(sample, SignalId::event_reasons), kUnknown);
  EXPECT_NE(value(sample, SignalId::power_capped_time), kUnknown);
  EXPECT_EQ(value(sample, SignalId::foreign_processes), 0);
  EXPECT_EQ(sample[SignalId::average_power], std::nullopt);
  const auto card = machine.open_card();
  EXPECT_EQ((*card)->energy(), std::nullopt);
  EXPECT_EQ((*card)->info().energy_method, EnergyMethod::power_integral);
  EXPECT_EQ((*card)->info().energy_tick, std::nullopt);
}

TEST(NvmlCard, reads_what_changes_fast_with_one_call) {
  const FakeMachine machine;
  const auto card = machine.open_card();
  ASSERT_TRUE(card);
  const auto before = machine.nvml.calls("nvmlDeviceGetFieldValues");
  const auto power_before = machine.nvml.calls("nvmlDeviceGetPowerUsage");
  ASSERT_TRUE((*card)->read_quickly());
  EXPECT_EQ(machine.nvml.calls("nvmlDeviceGetFieldValues"), before + 1);
  EXPECT_EQ(machine.nvml.calls("nvmlDeviceGetPowerUsage"), power_before);
  EXPECT_EQ(machine.nvml.calls("nvmlDeviceGetTemperatureV"), 0U);
}

TEST(NvmlCard, never_writes) {
  FakeMachine machine;
  read(machine);
  EXPECT_TRUE(machine.nvml.writes().empty());
}

struct Refusal {
  std::string symbol;
  std::set<std::string_view> blanked;
};

TEST(NvmlCard, leaves_only_that_unknown_which_a_call_refuses) {
  for (const Refusal& refusal :
       {Refusal{"nvmlDeviceGetClockInfo", {"sm_clock", "memory_clock", "graphics_clock"}},
        Refusal{"nvmlDeviceGetTemperature*", {"temperature"}},
        Refusal{"nvmlDeviceGetMarginTemperature", {"temperature_margin"}},
        Refusal{"nvmlDeviceGetFanSpeed*", {"fan"}},
        Refusal{"nvmlDeviceGetUtilizationRates", {"gpu_utilisation", "memory_utilisation"}},
        Refusal{"nvmlDeviceGetMemoryInfo*", {"memory_used", "memory_total"}},
        Refusal{"nvmlDeviceGetCurrentClocks*", {"event_reasons"}},
        Refusal{"nvmlDeviceGetCurrPcieLinkGeneration", {"pcie_generation"}},
        Refusal{"nvmlDeviceGetCurrPcieLinkWidth", {"pcie_width"}},
        Refusal{"nvmlDeviceGetTotalEccErrors", {"ecc_corrected", "ecc_uncorrected"}},
        Refusal{"nvmlDeviceGetComputeRunningProcesses*", {"foreign_processes"}},
        Refusal{"nvmlDeviceGetPowerManagementLimitConstraints",
                {"min_limit", "max_limit", "default_limit"}},
        Refusal{"nvmlDeviceGetPowerManagementDefaultLimit", {"default_limit"}}}) {
    for (const std::uint32_t code : {3U, 4U, 999U}) {
      fake_nvml::Script script = one_fault(refusal.symbol, code);
      script.cards[0].ecc = true;
      std::set<std::string_view> expected = refusal.blanked;
      expected.insert("energy");
      EXPECT_EQ(unknown_in(read(FakeMachine(script))), expected) << refusal.symbol << code;
    }
  }
}

TEST(NvmlCard, leaves_only_that_field_unknown_which_fails) {
  struct Row {
    std::uint32_t field;
    std::string_view name;
  };
  for (const Row& row :
       {Row{185, "average_power"}, Row{77, "board_limit_time"}, Row{79, "reliability_time"},
        Row{269, "software_thermal_time"}, Row{270, "hardware_thermal_time"},
        Row{271, "power_brake_time"}, Row{82, "memory_temperature"}, Row{197, "pcie_sent"},
        Row{198, "pcie_received"}, Row{230, "recovery_action"}}) {
    fake_nvml::Script script = ecc_card();
    fake_nvml::Fault fault;
    fault.symbol = "nvmlDeviceGetFieldValues";
    fault.field = row.field;
    fault.code = 3;
    script.faults.push_back(fault);
    EXPECT_EQ(unknown_in(read(FakeMachine(script))),
              (std::set<std::string_view>{"energy", row.name}))
        << row.field;
  }
}

TEST(NvmlCard, asks_the_older_function_where_a_field_or_all_of_them_fail) {
  fake_nvml::Script all = one_fault("nvmlDeviceGetFieldValues", 3);
  const Sample sample = read(FakeMachine(all));
  EXPECT_NEAR(value(sample, SignalId::power), 320, 5);
  EXPECT_EQ(value(sample, SignalId::requested_limit), 350);
  EXPECT_EQ(value(sample, SignalId::enforced_limit), 350);
  fake_nvml::Script one = FakeNvml::cards(1);
  one.cards[0].no_fields = {186, 192, 190};
  const Sample other = read(FakeMachine(one));
  EXPECT_NEAR(value(other, SignalId::power), 320, 5);
  EXPECT_EQ(value(other, SignalId::requested_limit), 350);
  EXPECT_EQ(value(other, SignalId::enforced_limit), 350);
}

TEST(NvmlCard, falls_back_where_the_driver_knows_an_older_struct_only) {
  constexpr std::uint32_t kVersionMismatch = 25;
  for (const std::string symbol : {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperatureV"}) {
    const Sample sample = read(FakeMachine(one_fault(symbol, kVersionMismatch)));
    EXPECT_NE(value(sample, SignalId::memory_used), kUnknown) << symbol;
    EXPECT_NE(value(sample, SignalId::temperature), kUnknown) << symbol;
  }
}

TEST(NvmlCard, is_lost_when_any_call_of_a_reading_says_so) {
  for (const std::string symbol :
       {"nvmlDeviceGetFieldValues", "nvmlDeviceGetClockInfo", "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetComputeRunningProcesses*", "*"}) {
    fake_nvml::Script script = one_fault(symbol, 15);
    script.faults[0].armed = false;
    FakeMachine machine(script);
    const auto card = machine.open_card();
    ASSERT_TRUE(card);
    ASSERT_TRUE((*card)->read()) << symbol;
    machine.nvml.arm(0);
    const auto sample = (*card)->read();
    ASSERT_FALSE(sample) << symbol;
    EXPECT_EQ(sample.error().kind, ErrorKind::device);
    EXPECT_NE(sample.error().message.find("the GPU is lost"), std::string::npos);
    EXPECT_NE(sample.error().message.find(machine.uuid()), std::string::npos);
    machine.nvml.disarm(0);
    EXPECT_TRUE((*card)->read()) << "a card that came back is read again";
  }
}

TEST(NvmlCard, is_lost_when_one_field_says_so) {
  fake_nvml::Script script = one_fault("nvmlDeviceGetFieldValues", 15);
  script.faults[0].field = 74;
  FakeMachine machine(script);
  const auto card = machine.open_card();
  EXPECT_FALSE(card && (*card)->read());
}

TEST(NvmlCard, has_no_energy_where_the_call_fails) {
  for (const std::uint32_t code : {3U, 15U, 999U}) {
    const FakeMachine machine(one_fault("nvmlDeviceGetTotalEnergyConsumption", code));
    const auto card = machine.open_card();
    ASSERT_TRUE(card);
    EXPECT_EQ((*card)->energy(), std::nullopt);
    EXPECT_EQ((*card)->info().energy_method, EnergyMethod::power_integral);
  }
}

TEST(NvmlCard, shows_no_energy_of_a_counter_that_was_found_not_to_be_trusted) {
  const FakeMachine machine;
  const auto card = machine.open_card();
  ASSERT_TRUE(card);
  EXPECT_TRUE((*card)->energy());
  EnergyJudgement judgement;
  judgement.method = EnergyMethod::power_integral;
  judgement.checked = true;
  judgement.relative_error = 0.11;
  (*card)->take(judgement);
  EXPECT_EQ((*card)->energy(), std::nullopt);
  EXPECT_EQ((*card)->info().energy_method, EnergyMethod::power_integral);
  EXPECT_TRUE((*card)->info().energy_is_checked);
}

TEST(NvmlCard, tells_no_margin_that_makes_no_sense) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].slowdown_c = 20;  // below its temperature
  EXPECT_EQ(read(FakeMachine(script))[SignalId::temperature_margin], std::nullopt);
}

TEST(NvmlCard, tells_no_memory_where_it_has_none_of_its_own) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].memory_bytes = 0;
  script.cards[0].memory_used_bytes = 0;
  script.cards[0].memory_reserved_bytes = 0;
  EXPECT_EQ(read(FakeMachine(script))[SignalId::memory_total], std::nullopt);
}

TEST(NvmlCard, has_no_fan_where_the_board_has_none) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].fans = 0;
  EXPECT_EQ(read(FakeMachine(script))[SignalId::fan], std::nullopt);
}

TEST(NvmlCard, says_that_it_is_sliced_and_does_not_invent_a_utilisation) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].mig_enabled = true;
  script.cards[0].mig_slices = 2;
  const FakeMachine machine(script);
  const auto card = machine.open_card();
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->info().sliced);
  EXPECT_EQ((*card)->read()->operator[](SignalId::gpu_utilisation), std::nullopt);
}

TEST(NvmlCard, is_not_there_under_another_uuid) {
  const FakeMachine machine;
  const auto library = machine.open_library();
  ASSERT_TRUE(library);
  const auto card = NvmlCard::open(*library, "GPU-other", machine.root());
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().kind, ErrorKind::device);
}

}  // namespace
}  // namespace halfwatt
