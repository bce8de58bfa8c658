#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "fake_nvml/nvml_client.h"

namespace halfwatt {
namespace {

using fake_nvml::Return;

TEST(FakeNvmlVariant, modern_has_every_symbol) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client;
  EXPECT_TRUE(client.has("nvmlDeviceGetComputeRunningProcesses_v3"));
  EXPECT_TRUE(client.has("nvmlDeviceGetMemoryInfo_v2"));
  EXPECT_TRUE(client.has("nvmlErrorString"));
}

TEST(FakeNvmlVariant, old_lacks_what_came_after_driver_450_and_sets_limits) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client(NvmlVariant::old);
  EXPECT_FALSE(client.has("nvmlDeviceGetComputeRunningProcesses_v3"));
  EXPECT_FALSE(client.has("nvmlDeviceGetMemoryInfo_v2"));
  EXPECT_FALSE(client.has("nvmlDeviceGetCurrentClocksEventReasons"));
  EXPECT_TRUE(client.get<std::uint64_t>("nvmlDeviceGetCurrentClocksThrottleReasons"));
  EXPECT_EQ(client.field(192).value.as_u32, 350'000U);
  EXPECT_EQ(client.set_limit(200'000), Return::success);
  EXPECT_EQ(client.limit_mw(), 200'000U);
}

TEST(FakeNvmlVariant, ancient_has_no_suffix_anywhere_and_sets_limits) {
  FakeNvml fake;
  fake.enter_environment();
  const NvmlClient client(NvmlVariant::ancient);
  EXPECT_FALSE(client.has("nvmlInit_v2"));
  EXPECT_FALSE(client.has("nvmlDeviceGetPciInfo_v3"));
  EXPECT_FALSE(client.has("nvmlDeviceGetFieldValues"));
  EXPECT_EQ(client.energy_mj(), std::nullopt);
  EXPECT_EQ(client.set_limit(200'000), Return::success);
  EXPECT_EQ(client.limit_mw(), 200'000U);
}

TEST(FakeNvmlVariant, no_nvml_loads_and_has_nothing) {
  const NvmlClient client(NvmlVariant::no_nvml);
  EXPECT_TRUE(client.has("halfwatt_is_no_nvml"));
  EXPECT_EQ(client.init(), Return::function_not_found);
}

TEST(FakeNvmlScript, is_needed) { EXPECT_EQ(NvmlClient().init(), Return::driver_not_loaded); }

/// What reading a script of this text says.
std::string refusal_of(const std::string& text) {
  const FakeNvml folder;
  const std::string path = (folder.folder() / "other.json").string();
  std::ofstream(path) << text;
  try {
    (void)fake_nvml::read_script(path);
    return "";
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
}

TEST(FakeNvmlScript, has_no_key_that_the_fake_does_not_know) {
  EXPECT_EQ(refusal_of(R"({"cards": [{"uuid": "GPU-1", "processes": [{"pid": 1}]}]})"), "");
  EXPECT_NE(refusal_of(R"({"cards": [{"uid": "GPU-1"}]})").find("script.cards.0.uid"),
            std::string::npos);
  EXPECT_NE(refusal_of("{"), "");
}

TEST(FakeNvmlScript, reads_back_as_it_was_written) {
  fake_nvml::Script script = FakeNvml::cards(2);
  script.cards[1].found_mw = 300'000;
  script.faults.resize(1);
  script.faults[0].revert_after_s = 2;
  script.symbol_us["nvmlInit_v2"] = 5;
  const FakeNvml fake(script);
  EXPECT_EQ(fake_nvml::to_text(fake_nvml::read_script(fake.script_path())),
            fake_nvml::to_text(fake_nvml::completed(script, fake.script_path())));
}

}  // namespace
}  // namespace halfwatt
