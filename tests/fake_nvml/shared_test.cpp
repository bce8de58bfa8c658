#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "fake_nvml/nvml_client.h"

namespace halfwatt {
namespace {

using fake_nvml::Return;
using fake_nvml::Script;
using fake_nvml::Source;

TEST(FakeNvml, shows_another_process_what_one_set) {
  FakeNvml fake;
  fake.enter_environment();
  const pid_t child =
      start_child([] { return NvmlClient().set_limit(200'000) == Return::success ? 0 : 1; });
  EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(NvmlClient().limit_mw(), 200'000U);
  EXPECT_EQ(fake.requested_mw(), 200'000U);
}

TEST(FakeNvml, keeps_every_attempt_to_set_with_its_process_and_answer) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  ASSERT_EQ(client.set_limit(200'000), Return::success);
  ASSERT_EQ(client.set_limit(99'999), Return::invalid_argument);
  fake.set_requested(250'000);
  const std::vector<LimitWrite> writes = fake.writes();
  ASSERT_EQ(writes.size(), 3U);
  EXPECT_EQ(writes[0].pid, getpid());
  EXPECT_EQ(writes[0].asked_mw, 200'000U);
  EXPECT_EQ(writes[0].in_force_mw, 200'000U);
  EXPECT_FALSE(writes[1].accepted);
  EXPECT_EQ(writes[1].in_force_mw, std::nullopt);
  EXPECT_EQ(writes[2].source, Source::test);
  EXPECT_LE(writes[0].time_ns, writes[2].time_ns);
}

TEST(FakeNvml, shows_the_program_what_somebody_else_set) {
  FakeNvml fake(FakeNvml::cards(2));
  fake.enter_environment();
  const NvmlClient client;
  fake.set_requested(180'000, 1);
  EXPECT_EQ(client.limit_mw(0), 350'000U);
  EXPECT_EQ(client.limit_mw(1), 180'000U);
}

TEST(FakeNvml, counts_values_of_somebody_else_that_a_program_replaced) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  ASSERT_EQ(client.set_limit(200'000), Return::success);
  ASSERT_EQ(client.set_limit(210'000), Return::success);
  EXPECT_EQ(fake.overwritten_foreign(), 0U);
  fake.set_requested(250'000);
  ASSERT_EQ(client.set_limit(220'000), Return::success);
  EXPECT_EQ(fake.overwritten_foreign(), 1U);
}

TEST(FakeNvml, lets_somebody_else_set_a_limit_when_the_script_says_so) {
  Script script = FakeNvml::cards(1);
  script.virtual_clock = true;
  script.cards[0].happenings.resize(1);
  script.cards[0].happenings[0].at_s = 3;
  script.cards[0].happenings[0].limit_mw = 250'000;
  FakeNvml fake(script);
  fake.enter_environment();
  const NvmlClient client;
  fake.advance(Seconds(2));
  ASSERT_EQ(client.set_limit(200'000), Return::success);
  fake.advance(Seconds(2));
  EXPECT_EQ(client.limit_mw(), 250'000U);
  EXPECT_EQ(fake.writes().at(1).time_ns, 3'000'000'000);
  EXPECT_EQ(fake.writes().at(1).source, Source::script);
}

/// Sets limits as fast as it can until it is killed.
int set_and_set() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
  const NvmlClient client;
  std::uint32_t i = 0;
  while (client.set_limit(200'000 + i % 100 * 1000) == Return::success) {
    ++i;
  }
  return 1;
}

TEST(FakeNvml, survives_processes_that_are_killed_in_the_middle_of_calls) {
  Script script = FakeNvml::cards(1);
  script.call_us = 100;  // the history holds 65,536 events
  FakeNvml fake(script);
  fake.enter_environment();
  for (int round = 0; round < 20; ++round) {
    const std::size_t before = fake.writes().size();
    const std::array children{start_child(set_and_set), start_child(set_and_set)};
    while (fake.writes().size() < before + 50) {
      sched_yield();
    }
    for (const pid_t child : children) {
      kill(child, SIGKILL);
      EXPECT_EQ(WTERMSIG(end_of(child)), SIGKILL);
    }
  }
  const std::vector<LimitWrite> writes = fake.writes();
  EXPECT_TRUE(std::is_sorted(writes.begin(), writes.end(), [](const auto& a, const auto& b) {
    return a.time_ns < b.time_ns;
  }));
  for (const LimitWrite& write : writes) {
    ASSERT_TRUE(write.accepted && write.in_force_mw == write.asked_mw);
    ASSERT_TRUE(write.asked_mw >= 200'000 && write.asked_mw < 300'000);
  }
  const NvmlClient client;
  EXPECT_EQ(client.limit_mw(), writes.back().asked_mw);
  EXPECT_EQ(client.set_limit(300'000), Return::success);
  EXPECT_EQ(fake.requested_mw(), 300'000U);
}

TEST(FakeNvml, loses_no_write_of_several_processes_at_once) {
  FakeNvml fake;
  fake.enter_environment();
  const auto sets_100 = [] {
    const NvmlClient client;
    int failed = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
      failed += client.set_limit(200'000 + i) == Return::success ? 0 : 1;
    }
    return failed;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start_child(sets_100));
  }
  for (const pid_t child : children) {
    EXPECT_EQ(end_of(child), 0);
  }
  EXPECT_EQ(fake.writes().size(), 400U);
}

Script unloading() {
  Script script = FakeNvml::cards(1);
  script.unloads_without_clients = true;
  script.cards[0].persistence = false;
  script.cards[0].found_mw = 300'000;
  return script;
}

TEST(FakeNvml, forgets_the_limit_with_the_last_process_unless_the_driver_persists) {
  FakeNvml fake(unloading());
  fake.enter_environment();
  EXPECT_EQ(NvmlClient().limit_mw(), 300'000U);
  EXPECT_EQ(NvmlClient().limit_mw(), 350'000U);
}

TEST(FakeNvml, keeps_the_limit_while_any_process_has_it_open) {
  FakeNvml fake(unloading());
  fake.enter_environment();
  const NvmlClient holder;
  const pid_t child = start_child([] {
    (void)NvmlClient().set_limit(200'000);
    raise(SIGKILL);
    return 0;
  });
  (void)end_of(child);
  EXPECT_EQ(NvmlClient().limit_mw(), 200'000U);
}

TEST(FakeNvml, lets_only_the_privileged_set_where_the_script_says_so) {
  Script script = FakeNvml::cards(1);
  script.anyone_may_set = false;
  script.root_may_set = false;
  FakeNvml fake(script);
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_EQ(client.set_limit(200'000), Return::no_permission);
  EXPECT_EQ(client.call("nvmlDeviceSetPersistenceMode", client.device(), 0U),
            Return::no_permission);
  setenv("HALFWATT_FAKE_NVML_PRIVILEGED", "1", 1);
  EXPECT_EQ(client.set_limit(200'000), Return::success);
  unsetenv("HALFWATT_FAKE_NVML_PRIVILEGED");
  EXPECT_EQ(fake.writes().size(), 2U);
}

TEST(FakeNvml, counts_the_calls_of_all_processes) {
  FakeNvml fake;
  fake.enter_environment();
  (void)end_of(start_child([] { return NvmlClient().limit_mw() ? 0 : 1; }));
  (void)NvmlClient().limit_mw();
  EXPECT_EQ(fake.calls("nvmlDeviceGetPowerManagementLimit"), 2U);
  EXPECT_EQ(fake.calls("nvmlInit_v2", std::nullopt), 2U);
}

}  // namespace
}  // namespace halfwatt
