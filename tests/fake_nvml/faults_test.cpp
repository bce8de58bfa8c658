#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <thread>

#include "fake_nvml/nvml_client.h"

namespace halfwatt {
namespace {

using fake_nvml::Fault;
using fake_nvml::Return;
using fake_nvml::Script;

constexpr auto kSet = "nvmlDeviceSetPowerManagementLimit";
constexpr auto kGet = "nvmlDeviceGetPowerManagementLimit";

/// Cards on a virtual clock that one fault befalls.
Script with(Fault fault, std::size_t cards = 1) {
  Script script = FakeNvml::cards(cards);
  script.virtual_clock = true;
  script.faults = {std::move(fault)};
  return script;
}

Fault fault_of(const char* symbol) {
  Fault fault;
  fault.symbol = symbol;
  return fault;
}

Fault answering(const char* symbol, Return code) {
  Fault fault = fault_of(symbol);
  fault.code = static_cast<std::uint32_t>(code);
  return fault;
}

Return reads(const NvmlClient& client, std::uint32_t card = 0) {
  std::uint32_t mw = 0;
  return client.call(kGet, client.device(card), &mw);
}

TEST(FakeNvmlFault, gives_every_code_that_a_script_names) {
  for (const std::uint32_t code : {1, 2, 3, 4, 6, 7, 8, 11, 15, 16, 17, 20, 25, 26, 27, 999}) {
    FakeNvml fake(with(answering(kGet, Return{code})));
    fake.enter_environment();
    EXPECT_EQ(reads(NvmlClient()), Return{code});
  }
}

TEST(FakeNvmlFault, fails_init_as_a_driver_that_is_absent_or_another) {
  for (const std::uint32_t code : {9, 12, 18, 999}) {
    FakeNvml fake(with(answering("nvmlInit*", Return{code})));
    fake.enter_environment();
    const NvmlClient client;
    EXPECT_EQ(client.init(), Return{code});
    EXPECT_EQ(reads(client), Return::uninitialized);
  }
}

TEST(FakeNvmlFault, befalls_one_card_from_one_time_until_another) {
  Fault fault = answering("*", Return::gpu_is_lost);
  fault.card = 1;
  fault.from_s = 10;
  fault.until_s = 20;
  FakeNvml fake(with(fault, 2));
  fake.enter_environment();
  const NvmlClient client;
  const fake_nvml::Device device = client.device(1);
  std::uint32_t mw = 0;
  EXPECT_EQ(client.call(kGet, device, &mw), Return::success);
  fake.advance(Seconds(10));
  EXPECT_EQ(client.call(kGet, device, &mw), Return::gpu_is_lost);
  EXPECT_EQ(client.device(1), nullptr);
  EXPECT_EQ(reads(client, 0), Return::success);
  fake.advance(Seconds(10));
  EXPECT_EQ(client.call(kGet, device, &mw), Return::success);
}

TEST(FakeNvmlFault, befalls_calls_by_their_number) {
  Fault fault = answering(kGet, Return::unknown);
  fault.from_call = 2;
  fault.until_call = 3;
  FakeNvml fake(with(fault));
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(reads(client), Return::success);
  EXPECT_EQ(reads(client), Return::unknown);
  EXPECT_EQ(reads(client), Return::unknown);
  EXPECT_EQ(reads(client), Return::success);
}

TEST(FakeNvmlFault, befalls_one_field_alone) {
  Fault fault = answering("nvmlDeviceGetFieldValues", Return::no_permission);
  fault.field = 186;
  FakeNvml fake(with(fault));
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(client.field(186).result, Return::no_permission);
  EXPECT_EQ(client.field(185).result, Return::success);
}

TEST(FakeNvmlFault, waits_until_a_test_arms_it) {
  Fault fault = answering(kGet, Return::gpu_is_lost);
  fault.armed = false;
  FakeNvml fake(with(fault));
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(reads(client), Return::success);
  fake.arm(0);
  EXPECT_EQ(reads(client), Return::gpu_is_lost);
  fake.disarm(0);
  EXPECT_EQ(reads(client), Return::success);
}

TEST(FakeNvmlFault, blocks_a_call_and_no_other) {
  Fault fault = fault_of(kGet);
  fault.block_s = 30;
  FakeNvml fake(with(fault));
  fake.enter_environment();
  const NvmlClient client;
  std::thread blocked([&client] { EXPECT_EQ(reads(client), Return::success); });
  while (fake.calls(kGet) == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(client.get<std::uint32_t>("nvmlDeviceGetPowerUsage"), 320'000U);
  EXPECT_EQ(fake.now(), Seconds(0));
  // In two steps, since it may have to begin to wait yet.
  while (blocked.joinable() && fake.now() < Seconds(120)) {
    fake.advance(Seconds(60));
  }
  blocked.join();
}

TEST(FakeNvmlFault, ignores_a_set_in_silence) {
  Fault fault = fault_of(kSet);
  fault.ignore = true;
  FakeNvml fake(with(fault));
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(client.set_limit(200'000), Return::success);
  EXPECT_EQ(client.limit_mw(), 350'000U);
  EXPECT_TRUE(fake.writes().at(0).accepted);
  EXPECT_EQ(fake.writes().at(0).in_force_mw, std::nullopt);
}

TEST(FakeNvmlFault, takes_a_set_back_after_a_while) {
  Fault fault = fault_of(kSet);
  fault.revert_after_s = 2;
  FakeNvml fake(with(fault));
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(client.set_limit(200'000), Return::success);
  fake.advance(Seconds(1));
  EXPECT_EQ(client.limit_mw(), 200'000U);
  fake.advance(Seconds(1));
  EXPECT_EQ(client.limit_mw(), 350'000U);
  EXPECT_EQ(fake.writes().at(1).source, fake_nvml::Source::revert);
}

TEST(FakeNvmlFault, puts_another_limit_in_place) {
  Fault fault = fault_of(kSet);
  fault.set_instead_mw = 220'000;
  FakeNvml fake(with(fault));
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(client.set_limit(200'000), Return::success);
  EXPECT_EQ(client.limit_mw(), 220'000U);
}

TEST(FakeNvmlFault, enforces_less_than_was_requested) {
  Script script = FakeNvml::cards(1);
  script.cards[0].cap_mw = 240'000;
  script.cards[0].limit_step_mw = 1000;
  FakeNvml fake(script);
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(client.set_limit(300'700), Return::success);
  EXPECT_EQ(client.limit_mw(), 300'000U);
  EXPECT_EQ(client.get<std::uint32_t>("nvmlDeviceGetEnforcedPowerLimit"), 240'000U);
  EXPECT_EQ(client.field(190).value.as_u32, 240'000U);
  EXPECT_EQ(client.field(192).value.as_u32, 300'000U);
}

TEST(FakeNvmlFault, kills_the_caller_before_or_after_its_call_had_an_effect) {
  for (const bool before : {true, false}) {
    Fault fault = fault_of(kSet);
    (before ? fault.raise_before : fault.raise_after) = SIGKILL;
    FakeNvml fake(with(fault));
    fake.enter_environment();
    const int status = end_of(start_child([] {
      (void)NvmlClient().set_limit(200'000);
      return 0;
    }));
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    EXPECT_EQ(fake.requested_mw(), before ? 350'000U : 200'000U);
  }
}

double cpu_seconds() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
}

TEST(FakeNvmlFault, takes_the_time_of_a_slow_call_busy_or_asleep) {
  for (const bool busy : {true, false}) {
    Script script = FakeNvml::cards(1);
    script.symbol_us[kGet] = 20'000;
    script.call_is_busy = busy;
    FakeNvml fake(script);
    fake.enter_environment();
    const NvmlClient client;
    const auto begin = std::chrono::steady_clock::now();
    const double spent_before = cpu_seconds();
    EXPECT_EQ(reads(client), Return::success);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
    if (!busy) {
      EXPECT_LT(cpu_seconds() - spent_before, 0.010);
    }
  }
}

}  // namespace
}  // namespace halfwatt
