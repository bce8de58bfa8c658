// Real devices as a person meets them: the built program against the fake NVML.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "cli/program.h"
#include "fake_nvml/fake_nvml.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

/// The program in a machine of its own: fake cards, and a root without anything else.
class DevicesTest : public testing::Test {
 protected:
  void script(fake_nvml::Script what, NvmlVariant with = NvmlVariant::modern) {
    nvml.emplace(std::move(what));
    variant = with;
  }
  Outcome run(const std::string& words, const std::string& more = "") const {
    std::string before = "HALFWATT_ROOT='" + root.path("") + "' " + more + " ";
    for (const std::string& each : nvml->environment(variant)) {
      const std::size_t equals = each.find('=');
      before += each.substr(0, equals + 1) + "'" + each.substr(equals + 1) + "' ";
    }
    return run_program(words, "env -u CUDA_VISIBLE_DEVICES -u CUDA_DEVICE_ORDER " + before);
  }
  /// All signals of the first card.
  Json signals() const {
    return Json::parse(run("monitor --once --json").out)["devices"][0]["signals"];
  }
  void add_cpu() const {
    const std::string zone = "sys/class/powercap/intel-rapl:0/";
    std::filesystem::create_directories(root.path(zone));
    root.write(zone + "name", "package-0\n");
    root.write(zone + "energy_uj", "5000000\n");
    root.write(zone + "max_energy_range_uj", "262143328850\n");
  }

  std::optional<FakeNvml> nvml;
  NvmlVariant variant = NvmlVariant::modern;
  Folder root;
};

fake_nvml::Script one_fault(const std::string& symbol, std::uint32_t code) {
  fake_nvml::Script script = FakeNvml::cards(2);
  fake_nvml::Fault fault;
  fault.symbol = symbol;
  fault.code = code;
  script.faults.push_back(fault);
  return script;
}

// Lines of more than 80 columns; the tables draw with characters of several bytes.
std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    most = std::max<std::size_t>(
        most, static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
          return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
        })));
  }
  return most;
}

bool one_line(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n') == 1 && text.starts_with("halfwatt: ");
}

TEST_F(DevicesTest, are_listed_with_limits_and_lasting_names) {
  script(FakeNvml::cards(2));
  add_cpu();
  const Outcome outcome = run("devices");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* text : {"gpu:0", "gpu:1", "cpu", "NVIDIA Fake 3090", "100-390", "350",
                           "0000:01:00.0", "counter, 100 ms*"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  }
  EXPECT_NE(outcome.out.find(nvml->card(1).uuid), std::string::npos);
  EXPECT_LE(widest(outcome.out), 80U);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(DevicesTest, are_listed_as_json) {
  script(FakeNvml::cards(2));
  const Outcome outcome = run("devices --json --device gpu:1", "CUDA_VISIBLE_DEVICES=1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "halfwatt.devices/1");
  ASSERT_EQ(json["devices"].size(), 1U);
  const Json& card = json["devices"][0];
  EXPECT_EQ(card["device"], "gpu:1");
  EXPECT_EQ(card["id"], nvml->card(1).uuid);
  EXPECT_EQ(card["pci"], "0000:02:00.0");
  EXPECT_EQ(card["cuda"], "0");
  EXPECT_EQ(card["requested_limit_w"], 350);
  EXPECT_EQ(card["min_limit_w"], 100);
  EXPECT_EQ(card["energy"]["method"], "counter");
  EXPECT_EQ(card["energy"]["checked"], false);
  EXPECT_EQ(card["mig"], false);
  EXPECT_TRUE(card["error"].is_null());
}

TEST_F(DevicesTest, are_shown_with_all_signals_once) {
  script(FakeNvml::cards(2));
  add_cpu();
  const Outcome outcome = run("monitor --once");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LE(widest(outcome.out), 80U);
  for (const char* text : {"power_capped_time", "requested_limit", "320.0", "unknown", "0x"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  }
  const Json json = Json::parse(run("monitor --once --json").out);
  ASSERT_EQ(json["devices"].size(), 3U);
  const Json& signals = json["devices"][0]["signals"];
  EXPECT_NEAR(signals["power_w"].get<double>(), 320, 5);
  EXPECT_GE(signals["energy_j"].get<double>(), 1000);
  EXPECT_EQ(signals["memory_total_bytes"], 24.0 * (1ULL << 30));
  EXPECT_TRUE(signals["ecc_corrected"].is_null());
  EXPECT_EQ(json["devices"][2]["device"], "cpu");
  EXPECT_EQ(json["devices"][2]["signals"]["average_power_w"], 0);
  EXPECT_TRUE(json["devices"][2]["signals"]["power_w"].is_null());
  EXPECT_TRUE(nvml->writes().empty());
}

TEST_F(DevicesTest, are_shown_through_every_set_of_symbols) {
  for (const NvmlVariant each : {NvmlVariant::modern, NvmlVariant::old, NvmlVariant::ancient}) {
    script(FakeNvml::cards(1), each);
    const Json json = Json::parse(run("monitor --once --json").out);
    EXPECT_NEAR(json["devices"][0]["signals"]["power_w"].get<double>(), 320, 5);
    EXPECT_EQ(json["devices"][0]["signals"]["enforced_limit_w"], 350);
  }
}

TEST_F(DevicesTest, blank_only_what_a_call_refuses) {
  for (const std::uint32_t code : {3U, 4U, 25U, 999U}) {
    script(one_fault("nvmlDeviceGetFanSpeed*", code));
    EXPECT_TRUE(signals()["fan_percent"].is_null());
    EXPECT_FALSE(signals()["temperature_c"].is_null());
    script(one_fault("nvmlDeviceGetMemoryInfo_v2", code));
    EXPECT_FALSE(signals()["memory_used_bytes"].is_null());
  }
}

TEST_F(DevicesTest, have_no_joules_without_a_counter) {
  script(one_fault("nvmlDeviceGetTotalEnergyConsumption", 3));
  EXPECT_TRUE(signals()["energy_j"].is_null());
  const Json json = Json::parse(run("devices --json").out);
  EXPECT_EQ(json["devices"][0]["energy"]["method"], "power-integral");
  EXPECT_TRUE(json["devices"][0]["energy"]["tick_s"].is_null());
}

TEST_F(DevicesTest, count_foreign_processes_and_do_not_guess_at_garbage) {
  std::filesystem::create_directories(root.path("proc/self/ns"));
  std::filesystem::create_symlink("pid:[4026531836]", root.path("proc/self/ns/pid"));
  fake_nvml::Script busy = FakeNvml::cards(1);
  busy.cards[0].processes.resize(1);
  busy.cards[0].processes[0].pid = 4711;
  script(busy);
  EXPECT_EQ(signals()["foreign_processes"], 1);
  busy.cards[0].process_records_535 = true;
  script(busy);
  EXPECT_EQ(signals()["foreign_processes"], 1);
  busy.cards[0].processes[0].pid = 0xfffffff0;
  script(busy);
  EXPECT_TRUE(signals()["foreign_processes"].is_null());
}

TEST_F(DevicesTest, are_waited_for_where_a_call_blocks) {
  fake_nvml::Script slow = FakeNvml::cards(1);
  fake_nvml::Fault fault;
  fault.symbol = "nvmlDeviceGetClockInfo";
  fault.block_s = 0.1;
  slow.faults.push_back(fault);
  script(slow);
  EXPECT_FALSE(signals()["sm_clock_mhz"].is_null());
}

TEST_F(DevicesTest, keep_their_uuid_where_the_index_changes) {
  fake_nvml::Script cards = FakeNvml::cards(2);
  cards.cards[0].uuid = "GPU-second";
  cards.cards[1].uuid = "GPU-first";
  script(cards);
  const Json json = Json::parse(run("devices --json --device GPU-first").out);
  EXPECT_EQ(json["devices"][0]["device"], "gpu:1");
  EXPECT_EQ(json["devices"][0]["id"], "GPU-first");
  EXPECT_EQ(json["devices"].size(), 1U);
}

TEST_F(DevicesTest, fail_with_status_3_and_one_line_where_there_are_none) {
  for (const auto& [code, text] : {std::pair<std::uint32_t, std::string>{4, "no permission"},
                                   {9, "driver is not loaded"},
                                   {12, "library of the NVIDIA driver is missing"},
                                   {17, "cgroup blocks"},
                                   {18, "NVML code 18"},
                                   {999, "unknown error"}}) {
    script(one_fault("nvmlInit*", code));
    for (const char* words : {"devices", "monitor --once", "devices --device gpu:0"}) {
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.status, 3) << words;
      EXPECT_EQ(outcome.out, "");
      EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
      EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    }
  }
  script(FakeNvml::cards(1), NvmlVariant::no_nvml);
  EXPECT_EQ(run("devices").status, 3);
  EXPECT_NE(run("devices").err.find("is not NVML"), std::string::npos);
}

TEST_F(DevicesTest, are_named_with_their_trouble_beside_those_that_work) {
  fake_nvml::Script troubled = one_fault("nvmlDeviceGetHandleByIndex*", 4);
  troubled.faults[0].card = 0;
  script(troubled);
  const Outcome outcome = run("devices");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("warning: gpu:0: no permission"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("gpu:1"), std::string::npos);
  EXPECT_EQ(run("devices --device gpu:0").status, 3);
}

TEST_F(DevicesTest, that_are_lost_end_the_reading_with_status_3_and_the_others_are_shown) {
  fake_nvml::Script lost = one_fault("nvmlDeviceGetClockInfo", 15);
  lost.faults[0].card = 0;
  script(lost);
  const Outcome outcome = run("monitor --once --json");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
  EXPECT_NE(outcome.err.find("the GPU is lost"), std::string::npos);
  const Json json = Json::parse(outcome.out);
  EXPECT_FALSE(json["devices"][0]["error"].is_null());
  EXPECT_TRUE(json["devices"][0]["signals"]["power_w"].is_null());
  EXPECT_FALSE(json["devices"][1]["signals"]["power_w"].is_null());
}

TEST_F(DevicesTest, say_that_they_are_sliced) {
  fake_nvml::Script sliced = FakeNvml::cards(1);
  sliced.cards[0].mig_enabled = true;
  sliced.cards[0].mig_slices = 2;
  script(sliced);
  EXPECT_NE(run("devices").out.find("MIG is on"), std::string::npos);
  EXPECT_EQ(run("devices --device MIG-1234").status, 2);
}

TEST_F(DevicesTest, say_where_cudas_numbers_are_in_doubt) {
  fake_nvml::Script mixed = FakeNvml::cards(2);
  mixed.cards[1].name = "NVIDIA H200";
  script(mixed);
  EXPECT_NE(run("devices").out.find("CUDA_DEVICE_ORDER=PCI_BUS_ID"), std::string::npos);
  EXPECT_EQ(run("devices", "CUDA_DEVICE_ORDER=PCI_BUS_ID").out.find("warning"),
            std::string::npos);
}

TEST_F(DevicesTest, are_refused_by_a_bad_list) {
  script(FakeNvml::cards(2));
  for (const auto& [words, status] : {std::pair<std::string, int>{"devices --device gpu:7", 3},
                                      {"devices --device nonsense", 2},
                                      {"monitor --once --device gpu:0,gpu:0", 2},
                                      {"monitor", 2},
                                      {"monitor --once --device cpu", 3}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, status) << words;
    EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
  }
}

TEST_F(DevicesTest, are_named_by_the_program_alone) {
  script(FakeNvml::cards(2));
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("GPU: NVIDIA Fake 3090 (gpu:1)"), std::string::npos)
      << outcome.out;
}

}  // namespace
}  // namespace halfwatt
