#include <gtest/gtest.h>

#include "fake_nvml/nvml_client.h"

namespace halfwatt {
namespace {

using fake_nvml::Happening;
using fake_nvml::Return;
using fake_nvml::Script;

/// A card of 300 W limit on a virtual clock under a demand of 200 W.
class FakeNvmlSensor : public testing::Test {
 protected:
  FakeNvmlSensor() {
    script.virtual_clock = true;
    card.found_mw = 300'000;
    card.demand_mw = 200'000;
  }
  NvmlClient& client() {
    if (!client_) {
      fake.emplace(script);
      fake->enter_environment();
      client_.emplace();
    }
    return *client_;
  }
  void advance(double seconds) {
    (void)client();
    fake->advance(Seconds(seconds));
  }
  std::uint32_t instant_mw() { return client().field(186).value.as_u32; }
  std::uint32_t average_mw() { return client().field(185).value.as_u32; }
  void happen(Happening happening) {
    (void)client();
    fake->happen(happening);
  }

  Script script = FakeNvml::cards(1);
  fake_nvml::Card& card = script.cards[0];
  std::optional<FakeNvml> fake;

 private:
  std::optional<NvmlClient> client_;
};

TEST_F(FakeNvmlSensor, shows_the_last_window_of_each_period) {
  advance(1.03);
  fake->set_demand(Watts(250));
  advance(0.05);
  EXPECT_EQ(instant_mw(), 200'000U) << "no update since the change";
  advance(0.04);
  EXPECT_EQ(instant_mw(), 250'000U) << "updated at 1.1 s with the window before it";
}

TEST_F(FakeNvmlSensor, averages_over_a_second) {
  advance(10);
  fake->set_demand(Watts(300));
  advance(0.5);
  EXPECT_EQ(average_mw(), 250'000U);
  EXPECT_EQ(instant_mw(), 300'000U);
  EXPECT_EQ(client().get<std::uint32_t>("nvmlDeviceGetPowerUsage"), 250'000U);
  advance(0.5);
  EXPECT_EQ(average_mw(), 300'000U);
}

TEST_F(FakeNvmlSensor, draws_no_more_than_the_limit_and_counts_that_time) {
  EXPECT_EQ(client().set_limit(150'000), Return::success);
  advance(4);
  EXPECT_EQ(instant_mw(), 150'000U);
  EXPECT_EQ(client().field(74).value.as_u64, 4'000'000'000U);
  EXPECT_EQ(client().get<std::uint64_t>("nvmlDeviceGetCurrentClocksEventReasons"), 0x4U);
  EXPECT_LT(client().field(190).value.as_u32, 200'000U);
}

TEST_F(FakeNvmlSensor, counts_energy_by_ticks) {
  const std::uint64_t start_mj = client().energy_mj().value();
  advance(0.25);
  EXPECT_EQ(client().energy_mj(), start_mj + 40'000) << "200 W until 0.2 s";
  EXPECT_EQ(client().field(191).value.as_u64, start_mj + 40'000);
  EXPECT_EQ(client().field(83).value_type, fake_nvml::ValueType::u64);
}

TEST_F(FakeNvmlSensor, passes_an_hour_at_once) {
  const std::uint64_t start_mj = client().energy_mj().value();
  advance(3600);
  EXPECT_EQ(client().energy_mj(), start_mj + 720'000'000);
  EXPECT_EQ(fake->drawn(), Joules(720'000));
}

TEST_F(FakeNvmlSensor, counts_coarsely_or_wrongly_if_the_script_says_so) {
  card.energy_quantum_mj = 100'000;
  card.energy_scale = 0.5;
  const std::uint64_t start_mj = client().energy_mj().value();
  advance(1.9);
  EXPECT_EQ(client().energy_mj(), start_mj + 100'000) << "190 J in steps of 100 J";
}

TEST_F(FakeNvmlSensor, has_an_energy_counter_that_sticks_and_resets) {
  advance(10);
  const std::uint64_t before_mj = client().energy_mj().value();
  happen({.energy = "stuck"});
  advance(10);
  EXPECT_EQ(client().energy_mj(), before_mj);
  happen({.energy = "runs"});
  EXPECT_EQ(client().energy_mj(), before_mj + 2'000'000);
  happen({.energy = "reset"});
  EXPECT_EQ(client().energy_mj(), 0U);
  advance(1);
  EXPECT_EQ(client().energy_mj(), 200'000U);
}

TEST_F(FakeNvmlSensor, may_have_no_energy_counter) {
  card.no_energy_counter = true;
  EXPECT_EQ(client().energy_mj(), std::nullopt);
  EXPECT_EQ(client().field(191).result, Return::not_supported);
}

TEST_F(FakeNvmlSensor, forgets_with_the_driver) {
  advance(10);
  happen({.reload = true});
  EXPECT_EQ(client().limit_mw(), 350'000U);
  EXPECT_EQ(client().energy_mj(), 0U);
}

TEST_F(FakeNvmlSensor, follows_a_demand_that_swings) {
  card.swing_ms = 1000;
  card.swing_low_mw = 100'000;
  card.swing_high_share = 0.25;
  const std::uint64_t start_mj = client().energy_mj().value();
  advance(0.2);
  EXPECT_EQ(instant_mw(), 200'000U);
  advance(0.4);
  EXPECT_EQ(instant_mw(), 100'000U);
  advance(9.4);
  EXPECT_EQ(client().energy_mj(), start_mj + 1'250'000);
  EXPECT_EQ(average_mw(), 125'000U);
}

TEST_F(FakeNvmlSensor, tells_reasons_and_how_long_they_lasted) {
  happen({.extra_reasons = 0x40});
  advance(3);
  happen({.extra_reasons = 0});
  advance(3);
  EXPECT_EQ(client().field(270).value.as_u64, 3'000'000'000U);
  EXPECT_EQ(client().field(271).value.as_u64, 0U);
  fake_nvml::Violation violation{};
  ASSERT_EQ(client().call("nvmlDeviceGetViolationStatus", client().device(), 1U, &violation),
            Return::success);
  EXPECT_EQ(violation.violation_ns, 3'000'000'000U);
}

TEST_F(FakeNvmlSensor, warms_up_and_has_margins_only_since_ada) {
  card.demand_mw = 20'000;
  EXPECT_EQ(client().get<std::uint32_t>("nvmlDeviceGetPerformanceState"), 8U);
  EXPECT_EQ(client().get<std::uint32_t>("nvmlDeviceGetCurrPcieLinkGeneration"), 1U);
  std::uint32_t cold = 0;
  ASSERT_EQ(client().call("nvmlDeviceGetTemperature", client().device(), 0U, &cold),
            Return::success);
  fake->set_demand(Watts(300));
  advance(60);
  std::uint32_t warm = 0;
  ASSERT_EQ(client().call("nvmlDeviceGetTemperature", client().device(), 0U, &warm),
            Return::success);
  EXPECT_GT(warm, cold + 20);
  EXPECT_EQ(client().field(194).result, Return::not_supported);
}

TEST_F(FakeNvmlSensor, gives_a_signed_margin_since_ada) {
  card.architecture = 8;
  card.slowdown_c = 30;
  const fake_nvml::FieldValue margin = client().field(194);
  EXPECT_EQ(margin.value_type, fake_nvml::ValueType::i32);
  EXPECT_EQ(margin.value.as_i32, 30 - 49);
}

TEST_F(FakeNvmlSensor, knows_no_field_that_the_script_takes_away) {
  card.no_fields = {186, 192};
  card.no_fields_from = 269;
  EXPECT_EQ(client().field(186).result, Return::not_supported);
  EXPECT_EQ(client().field(185).result, Return::success);
  EXPECT_EQ(client().field(270).result, Return::not_supported);
}

}  // namespace
}  // namespace halfwatt
