#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "fake_nvml/nvml_client.h"

namespace halfwatt {
namespace {

using fake_nvml::Process;
using fake_nvml::Return;
using fake_nvml::Script;

constexpr auto kV3 = "nvmlDeviceGetComputeRunningProcesses_v3";

TEST(FakeNvmlProcess, is_listed_in_every_layout) {
  FakeNvml fake;
  fake.enter_environment();
  fake.set_processes({{.pid = 7, .bytes = 1 << 20}, {.pid = 8}, {.pid = 9, .kind = 1}});
  const NvmlClient client;
  std::array<fake_nvml::ProcessV2, 4> list{};
  std::uint32_t count = list.size();
  ASSERT_EQ(client.call(kV3, client.device(), &count, list.data()), Return::success);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(list[0].bytes, 1U << 20);
  EXPECT_EQ(list[1].bytes, ~std::uint64_t{0}) << "unknown";

  std::array<fake_nvml::ProcessV1, 4> first{};
  count = first.size();
  ASSERT_EQ(client.call("nvmlDeviceGetComputeRunningProcesses", client.device(), &count,
                        first.data()),
            Return::success);
  EXPECT_EQ(first[1].pid, 8U);
}

TEST(FakeNvmlProcess, list_tells_its_length_to_who_has_no_room) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  std::uint32_t count = 0;
  fake_nvml::ProcessV2* const none = nullptr;
  EXPECT_EQ(client.call(kV3, client.device(), &count, none), Return::success);
  fake.set_processes({{.pid = 7}, {.pid = 8}});
  EXPECT_EQ(client.call(kV3, client.device(), &count, none), Return::insufficient_size);
  EXPECT_EQ(count, 2U);
}

TEST(FakeNvmlProcess, records_are_32_bytes_apart_with_drivers_535) {
  Script script = FakeNvml::cards(1);
  script.cards[0].process_records_535 = true;
  script.cards[0].processes = {{.pid = 7, .bytes = 70}, {.pid = 8, .bytes = 80}};
  FakeNvml fake(script);
  fake.enter_environment();
  const NvmlClient client;
  std::array<char, 4 * 32> bytes{};
  std::uint32_t count = 4;
  ASSERT_EQ(client.call(kV3, client.device(), &count, bytes.data()), Return::success);
  std::uint32_t second = 0;
  std::memcpy(&second, bytes.data() + 32, sizeof second);
  EXPECT_EQ(second, 8U);
}

TEST(FakeNvmlProcess, has_a_share_of_the_card_and_an_idle_card_has_none_to_tell) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  std::array<fake_nvml::ProcessSample, 4> samples{};
  std::uint32_t count = samples.size();
  const auto ask = [&] {
    count = samples.size();
    return client.call("nvmlDeviceGetProcessUtilization", client.device(), samples.data(),
                       &count, std::uint64_t{0});
  };
  EXPECT_EQ(ask(), Return::not_found);
  fake.set_processes({{.pid = 7, .sm_percent = 4'000'000'000}});
  EXPECT_EQ(ask(), Return::success);
  EXPECT_EQ(samples[0].sm_percent, 4'000'000'000U) << "nonsense as some drivers tell it";

  std::array<fake_nvml::ProcessRow, 4> rows{};
  fake_nvml::ProcessRows all{0x01000018, 4, 0, rows.data()};
  EXPECT_EQ(client.call("nvmlDeviceGetProcessesUtilizationInfo", client.device(), &all),
            Return::success);
  EXPECT_EQ(rows[0].pid, 7U);
}

}  // namespace
}  // namespace halfwatt
