#include "device/energy_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/fake_machine.h"
#include "device/simulated.h"

namespace halfwatt {
namespace {

/// A counter and a power meter as a script has them.
struct Meters {
  double watts = 300;
  double counter_scale = 1;
  double tick = 0.1;
  bool has_power = true;
  bool has_counter = true;
  bool stuck = false;
  double reset_at = 1e9;
};

EnergyJudgement judge(const Meters& meters) {
  EnergyCheck check;
  for (double now = 0.013;; now += 0.004) {
    double joules = std::floor(now / meters.tick) * meters.tick * meters.watts;
    joules = meters.stuck ? 5 : joules * meters.counter_scale;
    joules -= now >= meters.reset_at ? 250 : 0;
    const auto energy =
        meters.has_counter ? std::optional(Joules(1000 + joules)) : std::nullopt;
    const auto power = meters.has_power ? std::optional(Watts(meters.watts)) : std::nullopt;
    if (check.feed(Seconds(now), energy, power)) {
      EXPECT_NEAR(now, 2, 0.05);
      return check.result();
    }
  }
}

TEST(EnergyCheck, trusts_a_counter_that_agrees_and_finds_its_tick) {
  for (const double tick : {0.02, 0.1, 0.5}) {
    Meters meters;
    meters.tick = tick;
    const EnergyJudgement judged = judge(meters);
    EXPECT_EQ(judged.method, EnergyMethod::counter) << judged.why;
    ASSERT_TRUE(judged.tick);
    EXPECT_NEAR(judged.tick->value(), tick, 0.005);
    EXPECT_NEAR(*judged.relative_error, 0.06, 1e-9);
    EXPECT_TRUE(judged.checked);
  }
}

TEST(EnergyCheck, sums_up_power_where_the_counter_is_more_than_5_percent_and_2_joules_off) {
  for (const double scale : {0.5, 0.9, 1.1, 2.0}) {
    Meters meters;
    meters.counter_scale = scale;
    const EnergyJudgement judged = judge(meters);
    EXPECT_EQ(judged.method, EnergyMethod::power_integral) << judged.why;
    EXPECT_EQ(judged.tick, std::nullopt);
    EXPECT_NE(judged.why.find("not trusted"), std::string::npos) << judged.why;
    EXPECT_NEAR(*judged.relative_error, 0.11, 1e-9);
  }
}

TEST(EnergyCheck, forgives_a_gap_of_a_joule_or_a_percent) {
  Meters small;
  small.watts = 10;
  small.counter_scale = 1.08;  // 1.6 J
  EXPECT_EQ(judge(small).method, EnergyMethod::counter);
  EXPECT_NEAR(*judge(small).relative_error, 0.06, 1e-9);
  Meters near;
  near.counter_scale = 1.03;
  EXPECT_EQ(judge(near).method, EnergyMethod::counter);
}

TEST(EnergyCheck, does_not_use_a_counter_that_is_missing_stuck_reset_or_too_coarse) {
  Meters missing;
  missing.has_counter = false;
  Meters stuck;
  stuck.stuck = true;
  Meters reset;
  reset.reset_at = 1;
  Meters coarse;
  coarse.tick = 1.5;
  for (const auto& [meters, why] :
       {std::pair<Meters, const char*>{missing, "no energy counter"},
        {stuck, "moved never"},
        {reset, "went back"},
        {coarse, "moved once"}}) {
    const EnergyJudgement judged = judge(meters);
    EXPECT_EQ(judged.method, EnergyMethod::power_integral) << why;
    EXPECT_NE(judged.why.find(why), std::string::npos) << judged.why;
    EXPECT_EQ(judged.tick, std::nullopt);
  }
}

TEST(EnergyCheck, uses_a_counter_that_nothing_can_be_held_against_with_a_larger_error) {
  Meters meters;
  meters.has_power = false;
  EXPECT_EQ(judge(meters).method, EnergyMethod::counter);
  EXPECT_NEAR(*judge(meters).relative_error, 0.11, 1e-9);
}

TEST(EnergyCheck, knows_no_energy_where_nothing_is_told) {
  Meters meters;
  meters.has_power = false;
  meters.has_counter = false;
  EXPECT_EQ(judge(meters).method, EnergyMethod::none);
  EXPECT_EQ(judge(meters).relative_error, std::nullopt);
}

TEST(EnergyCheck, judges_a_simulated_card_on_its_own_clock) {
  VirtualClock clock;
  SimulatedCard card({DeviceId::Kind::simulated, "card"}, CardModel{}, clock);
  card.set_demand(Watts(300));
  const auto judged = check_energy(clock, card);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->method, EnergyMethod::counter);
  EXPECT_NEAR(judged->tick->value(), 0.1, 0.002);
  EXPECT_NEAR(clock.now().value(), 2, 0.01);
}

EnergyJudgement judge_card(fake_nvml::Script script) {
  script.virtual_clock = true;
  FakeMachine machine(std::move(script));
  machine.nvml.advance(Seconds(5));
  auto card = machine.open_card();
  EXPECT_TRUE(card) << card.error().message;
  FakeClock clock(machine.nvml);
  const auto judged = check_energy(clock, **card);
  EXPECT_TRUE(judged);
  return *judged;
}

TEST(EnergyCheck, finds_the_tick_of_a_real_card_and_trusts_it) {
  for (const std::uint32_t tick_ms : {20U, 100U, 250U}) {
    fake_nvml::Script script = FakeNvml::cards(1);
    script.cards[0].energy_tick_ms = tick_ms;
    const EnergyJudgement judged = judge_card(script);
    EXPECT_EQ(judged.method, EnergyMethod::counter) << judged.why;
    ASSERT_TRUE(judged.tick);
    EXPECT_NEAR(judged.tick->value(), tick_ms / 1000.0, 0.003);
  }
}

TEST(EnergyCheck, distrusts_a_real_card_whose_counter_is_wrong_stuck_or_reset) {
  fake_nvml::Script wrong = FakeNvml::cards(1);
  wrong.cards[0].energy_scale = 0.57;
  EXPECT_EQ(judge_card(wrong).method, EnergyMethod::power_integral);
  fake_nvml::Happening happening;
  happening.at_s = 0.5;
  happening.energy = "stuck";
  fake_nvml::Script stuck = FakeNvml::cards(1);
  stuck.cards[0].happenings = {happening};
  EXPECT_NE(judge_card(stuck).why.find("moved never"), std::string::npos);
  happening.at_s = 6;
  happening.energy = "reset";
  fake_nvml::Script reset = FakeNvml::cards(1);
  reset.cards[0].happenings = {happening};
  EXPECT_NE(judge_card(reset).why.find("went back"), std::string::npos);
}

TEST(EnergyCheck, says_that_a_card_is_lost) {
  fake_nvml::Script script = one_fault("nvmlDeviceGetFieldValues", 15);
  script.faults[0].from_call = 10;
  FakeMachine machine(script);
  auto card = machine.open_card();
  ASSERT_TRUE(card);
  SteadyClock clock;
  EXPECT_FALSE(check_energy(clock, **card));
}

}  // namespace
}  // namespace halfwatt
