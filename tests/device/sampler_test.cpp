#include "device/sampler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "device/fake_machine.h"

namespace halfwatt {
namespace {

Seconds now() { return SteadyClock().now(); }

/// Waits for what will come, a generous time at most.
bool comes(const std::function<bool()>& condition) {
  SteadyClock clock;
  const Seconds end = clock.now() + Seconds(20);
  while (!condition()) {
    if (clock.now() > end) {
      return false;
    }
    clock.sleep_until(clock.now() + Seconds(0.002));
  }
  return true;
}

std::vector<std::unique_ptr<Device>> open_all(const FakeMachine& machine, std::size_t count) {
  std::vector<std::unique_ptr<Device>> devices;
  for (std::size_t i = 0; i < count; ++i) {
    auto card = machine.open_card(i);
    EXPECT_TRUE(card) << card.error().message;
    devices.push_back(std::move(*card));
  }
  return devices;
}

SamplingRules fast() {
  SamplingRules rules;
  rules.period = Seconds(0.01);
  rules.full_period = Seconds(0.05);
  rules.energy_period = Seconds(0.05);
  rules.stale_after = Seconds(0.1);
  rules.patience = Seconds(0.1);
  return rules;
}

TEST(Sampler, samples_every_card_until_it_is_stopped) {
  const FakeMachine machine(FakeNvml::cards(3));
  const Seconds begun = now();
  Sampler sampler(open_all(machine, 3), fast());
  EXPECT_EQ(sampler.devices(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(comes([&] { return sampler.since(i, begun).size() >= 20; }));
    const auto samples = sampler.since(i, begun);
    bool saw_energy = false;
    for (std::size_t s = 0; s < samples.size(); ++s) {
      EXPECT_TRUE(s == 0 || samples[s].at > samples[s - 1].at);
      EXPECT_TRUE(samples[s].sample[SignalId::power]);
      EXPECT_TRUE(samples[s].sample[SignalId::temperature]);
      saw_energy = saw_energy || samples[s].sample[SignalId::energy];
    }
    EXPECT_TRUE(saw_energy);
    EXPECT_EQ(sampler.state(i).error, std::nullopt);
  }
  EXPECT_TRUE(sampler.stop());
  EXPECT_TRUE(sampler.stop());
  EXPECT_LE(sampler.state(0).latest->at, now());
}

TEST(Sampler, stops_at_once_while_it_waits_for_the_next_round) {
  const FakeMachine machine;
  SamplingRules rules;
  rules.period = Seconds(3600);
  Sampler sampler(open_all(machine, 1), rules);
  EXPECT_TRUE(comes([&] { return sampler.state(0).latest.has_value(); }));
  const Seconds begun = now();
  EXPECT_TRUE(sampler.stop());
  EXPECT_LT(now() - begun, Seconds(1));
}

fake_nvml::Script blocked_fields(double seconds) {
  fake_nvml::Script script = FakeNvml::cards(2);
  fake_nvml::Fault fault;
  fault.symbol = "nvmlDeviceGetFieldValues";
  fault.card = 0;
  fault.block_s = seconds;
  fault.armed = false;
  script.faults.push_back(fault);
  return script;
}

TEST(Sampler, names_the_card_that_blocks_and_goes_on_when_it_answers) {
  FakeMachine machine(blocked_fields(0.5));
  Sampler sampler(open_all(machine, 2), fast());
  EXPECT_TRUE(comes([&] { return sampler.state(1).latest.has_value(); }));
  machine.nvml.arm(0);
  EXPECT_TRUE(comes([&] { return sampler.state(0).blocked; }));
  machine.nvml.disarm(0);
  EXPECT_TRUE(sampler.state(0).stale_since);
  EXPECT_TRUE(sampler.state(1).stale_since) << "one thread reads them all";
  EXPECT_FALSE(sampler.state(1).blocked);
  EXPECT_TRUE(comes([&] { return !sampler.state(0).stale_since; }));
  EXPECT_FALSE(sampler.state(0).blocked);
}

TEST(Sampler, does_not_hang_when_it_is_stopped_in_a_call_that_blocks) {
  FakeMachine machine(blocked_fields(2));
  Seconds begun;
  {
    Sampler sampler(open_all(machine, 2), fast());
    EXPECT_TRUE(comes([&] { return sampler.state(1).latest.has_value(); }));
    machine.nvml.arm(0);
    EXPECT_TRUE(comes([&] { return sampler.state(0).blocked; }));
    machine.nvml.disarm(0);
    begun = now();
    EXPECT_FALSE(sampler.stop());
  }
  EXPECT_LT(now() - begun, Seconds(1));
  // The thread that was left behind ends, and with it the library's last owner.
  EXPECT_TRUE(comes([&] { return machine.nvml.calls("nvmlShutdown", std::nullopt) > 0; }));
}

TEST(Sampler, does_not_delay_whoever_reads_the_same_card_at_a_windows_edge) {
  // Calls of 20 ms: with a lock around them, a reading would have to wait for a whole round.
  fake_nvml::Script script = FakeNvml::cards(8);
  script.symbol_us = {{"nvmlDeviceGetFieldValues", 20'000}};
  script.call_is_busy = false;
  const FakeMachine machine(script);
  auto edge = machine.open_card(0);
  ASSERT_TRUE(edge);
  Sampler sampler(open_all(machine, 8), fast());
  EXPECT_TRUE(comes([&] { return sampler.state(7).latest.has_value(); }));
  Seconds slowest{0};
  for (int i = 0; i < 50; ++i) {
    const Seconds begun = now();
    EXPECT_TRUE((*edge)->energy());
    slowest = std::max(slowest, now() - begun);
    sampler.state(0);
  }
  EXPECT_LT(slowest, Seconds(0.15)) << "a round takes 160 ms";
}

TEST(Sampler, says_that_a_card_is_lost_and_reads_the_others) {
  fake_nvml::Script script = FakeNvml::cards(2);
  fake_nvml::Fault fault;
  fault.card = 1;
  fault.code = 15;
  fault.armed = false;
  script.faults.push_back(fault);
  FakeMachine machine(script);
  Sampler sampler(open_all(machine, 2), fast());
  EXPECT_TRUE(comes([&] { return sampler.state(1).latest.has_value(); }));
  machine.nvml.arm(0);
  EXPECT_TRUE(comes([&] { return sampler.state(1).error.has_value(); }));
  const Seconds lost = now();
  EXPECT_NE(sampler.state(1).error->message.find("the GPU is lost"), std::string::npos);
  EXPECT_TRUE(comes([&] { return sampler.since(0, lost).size() > 5; }));
  EXPECT_EQ(sampler.state(0).error, std::nullopt);
  machine.nvml.disarm(0);
  EXPECT_TRUE(comes([&] { return !sampler.state(1).error; }));
}

}  // namespace
}  // namespace halfwatt
