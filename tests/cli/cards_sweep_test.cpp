// A sweep of a small job on fake cards, from the command line to the record.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/fake_cards.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

std::string sweep_words(const FakeCards& cards, const std::string& more) {
  const std::string job = cards.folder.write(
      "job.sh", "echo $$ >\"$1\"\nwhile :; do i=$((i+1)); echo \"step $i\"; sleep 0.2; done\n");
  return "sweep --limits 200 --order descending --progress-regex 'step (?P<step>[0-9]+)'"
         " --record '" +
         cards.folder.path("run.jsonl") + "'" + cards.state() + more + " -- sh '" + job +
         "' '" + cards.folder.path("pid") + "'";
}

TEST(Sweep, measures_a_job_on_two_cards_as_one_and_puts_both_limits_back) {
  FakeCards cards(3);
  const std::string words = sweep_words(cards, "--device gpu:1,gpu:0");
  auto swept = std::async(std::launch::async, [&] { return cards.run(words); });
  std::string pid;
  while (pid.empty() &&
         swept.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    pid = read_file(cards.folder.path("pid"));
  }
  ASSERT_FALSE(pid.empty()) << swept.get().err;
  // Now it computes: a process of the job's own is no stranger's.
  fake_nvml::Process own;
  own.pid = static_cast<std::uint32_t>(std::stoul(pid));
  cards.fake.set_processes({own}, 0);
  const Outcome outcome = swept.get();
  ASSERT_EQ(outcome.status, 0) << outcome.err;

  for (const std::size_t card : {0U, 1U}) {
    EXPECT_EQ(limits_written(cards.fake, card),
              (std::vector<std::uint32_t>{350'000, 200'000, 350'000}));
  }
  EXPECT_TRUE(cards.fake.writes(2).empty());
  const std::vector<Json> record = lines_of(cards.folder.path("run.jsonl"));
  EXPECT_EQ(record.front()["device"], "2 x NVIDIA Fake 3090");
  EXPECT_EQ(record.front()["device_id"],
            cards.fake.card(0).uuid + "," + cards.fake.card(1).uuid);
  const Json& window = record.back();
  for (const Json& each : window["notes"]) {
    EXPECT_NE(each, "foreign-process");
  }
  const double watts =
      window["energy"]["joules"].get<double>() / window["work"]["duration_s"].get<double>();
  EXPECT_NEAR(watts, 2 * 200, 2 * 200 * 0.03);
  EXPECT_EQ(window["conditions"]["requested_limit_w"], 200);
  EXPECT_FALSE(outcome.out.find("more than its limit") != std::string::npos) << outcome.out;
}

TEST(Sweep, marks_every_window_of_a_card_that_is_shared_and_counts_it) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].processes.resize(1);
  script.cards[0].processes[0].pid = 4711;
  FakeCards cards(script);
  const Outcome outcome = cards.run(sweep_words(cards, "--shared"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<Json> record = lines_of(cards.folder.path("run.jsonl"));
  ASSERT_GE(record.size(), 2U);
  for (std::size_t i = 1; i < record.size(); ++i) {
    const auto notes = record[i]["notes"].get<std::vector<std::string>>();
    EXPECT_EQ(std::count(notes.begin(), notes.end(), "shared-card"), 1);
    EXPECT_EQ(std::count(notes.begin(), notes.end(), "foreign-process"), 0);
  }
  EXPECT_NE(outcome.out.find("--shared"), std::string::npos) << "stands in the verdict's notes";
}

}  // namespace
}  // namespace halfwatt
