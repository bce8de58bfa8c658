#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "cli/program.h"
#include "fake_nvml/fake_nvml.h"
#include "guard/guardian_client.h"
#include "guard/journal.h"

namespace halfwatt {
namespace {

/// Fake cards that the program finds, and a state folder of their own.
struct Bench {
  FakeNvml fake;
  std::string state;

  explicit Bench(std::size_t cards = 1) : Bench(FakeNvml::cards(cards)) {}
  explicit Bench(fake_nvml::Script script)
      : fake(std::move(script)), state((fake.folder() / "state").string()) {
    fake.enter_environment();
  }
  Outcome run(const std::string& words, const std::string& before = "") const {
    return run_program(words + " --state-dir '" + state + "'", before);
  }
  /// Leaves the first card as a halfwatt that was killed with its guardian does.
  void leave_changed() {
    const JournalEntry entry{fake.card().uuid, current_load(), Watts(350), true,
                             Watts(200),       Watts(300),     {}};
    EXPECT_TRUE(Journal(state).write(entry));
    fake.set_requested(200'000);
  }
};

TEST(RunCommand, does_not_start_the_job_on_a_card_that_ignores_its_limit) {
  fake_nvml::Script script = FakeNvml::cards(1);
  fake_nvml::Fault deaf;
  deaf.symbol = "nvmlDeviceSetPowerManagementLimit*";
  deaf.ignore = true;
  script.faults.push_back(deaf);
  Bench bench(std::move(script));
  const Outcome outcome =
      run_program("run --limit 200 --state-dir '" + bench.state + "' -- echo started");
  EXPECT_EQ(outcome.status, 125);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("a limit of 200 W: the card says 350 W"), std::string::npos)
      << outcome.err;
}

TEST(TuneCommand, reads_a_card_and_writes_nothing_on_a_dry_run) {
  Bench bench;
  const Outcome outcome = run_program("tune --dry-run --device gpu:0 --state-dir '" +
                                      bench.state + "' -- echo started");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("a throw-away copy of `echo started`"), std::string::npos);
  EXPECT_TRUE(bench.fake.writes().empty());
  EXPECT_FALSE(std::filesystem::exists(bench.state));
}

TEST(LimitCommand, shows_what_is_set_and_what_the_card_takes) {
  const Bench bench;
  const Outcome outcome = bench.run("limit");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, bench.fake.card().uuid + ": 350 W; takes 100-390 W, default 350 W\n");
}

TEST(LimitCommand, sets_a_limit_reads_it_back_and_leaves_it) {
  Bench bench;
  const Outcome outcome = bench.run("limit 280");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, bench.fake.card().uuid + ": 280 W, was 350 W\n");
  EXPECT_EQ(bench.fake.requested_mw(), 280'000U);
  EXPECT_EQ(bench.run("limit default").status, 0);
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

TEST(LimitCommand, asks_which_card_where_there_are_several) {
  Bench bench(2);
  EXPECT_EQ(bench.run("limit 280").status, 2);
  EXPECT_EQ(bench.run("limit 280 --device gpu:1").status, 0);
  EXPECT_EQ(bench.fake.requested_mw(0), 350'000U);
  EXPECT_EQ(bench.fake.requested_mw(1), 280'000U);
}

// Two cards of which the second refuses, after a while in which somebody may come.
fake_nvml::Script with_a_slow_refusal() {
  fake_nvml::Script script = FakeNvml::cards(2);
  fake_nvml::Fault fault;
  fault.symbol = "nvmlDeviceSetPowerManagementLimit*";
  fault.card = 1;
  fault.code = 999;
  fault.block_s = 1;
  script.faults.push_back(fault);
  return script;
}

TEST(LimitCommand, gives_the_first_card_back_what_it_had_where_the_second_refuses) {
  Bench bench(with_a_slow_refusal());
  EXPECT_EQ(bench.run("limit 280 --device all").status, 3);
  EXPECT_EQ(bench.fake.requested_mw(0), 350'000U);
}

TEST(LimitCommand, takes_back_no_limit_that_somebody_else_set_meanwhile) {
  Bench bench(with_a_slow_refusal());
  auto run = std::async(std::launch::async,
                        [&] { return bench.run("limit 280 --device gpu:0,gpu:1"); });
  for (int tries = 0; bench.fake.requested_mw(0) != 280'000U && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  bench.fake.set_requested(222'000, 0);
  const Outcome outcome = run.get();
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("stands at 222 W, and had 350 W"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(bench.fake.requested_mw(0), 222'000U);
}

TEST(LimitCommand, refuses_what_the_card_does_not_take) {
  Bench bench;
  for (const std::string words : {"limit 99", "limit 391", "limit -5", "limit low",
                                  "limit 200 300", "limit --boot", "limit 200 --install"}) {
    EXPECT_EQ(bench.run(words).status, 2) << words;
  }
  EXPECT_TRUE(bench.fake.writes().empty());
}

TEST(LimitCommand, prints_the_unit_for_the_boot_and_installs_it_only_when_told) {
  Bench bench;
  const std::string root = "HALFWATT_ROOT='" + bench.fake.folder().string() + "'";
  const Outcome printed = bench.run("limit 280 --boot", root);
  EXPECT_EQ(printed.status, 0) << printed.err;
  EXPECT_NE(printed.out.find(" limit 280 --device " + bench.fake.card().uuid),
            std::string::npos);
  const auto units = bench.fake.folder() / "etc/systemd/system";
  EXPECT_FALSE(std::filesystem::exists(units));
  EXPECT_EQ(bench.run("limit 280 --boot --install", root).status, 0);
  EXPECT_EQ(read_file(units / "halfwatt-limit.service"), printed.out);
  EXPECT_EQ(read_file(units / "multi-user.target.wants/halfwatt-limit.service"), printed.out);
  EXPECT_TRUE(bench.fake.writes().empty());
}

TEST(RestoreCommand, puts_back_what_was_left_and_then_has_nothing_to_do) {
  Bench bench;
  bench.leave_changed();
  const Outcome listed = bench.run("restore --list");
  EXPECT_EQ(listed.status, 0);
  EXPECT_NE(listed.out.find("found at 350 W, last set to 200 W; nobody holds it"),
            std::string::npos)
      << listed.out;
  EXPECT_EQ(bench.fake.requested_mw(), 200'000U) << "--list changes nothing";
  const Outcome restored = bench.run("restore");
  EXPECT_EQ(restored.status, 0) << restored.err;
  EXPECT_NE(restored.out.find("put back to 350 W from 200 W"), std::string::npos);
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
  EXPECT_EQ(bench.run("restore").out, "no limit is left to be put back\n");
}

TEST(RestoreCommand, leaves_a_strangers_limit_alone_says_both_values_and_ends_with_3) {
  Bench bench;
  bench.leave_changed();
  bench.fake.set_requested(222'000);
  const Outcome outcome = bench.run("restore");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("222 W"), std::string::npos);
  EXPECT_NE(outcome.err.find("350 W was found"), std::string::npos);
  EXPECT_EQ(bench.fake.requested_mw(), 222'000U);
  EXPECT_EQ(bench.run("restore --force").status, 0);
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

TEST(StatusCommand, tells_people_and_scripts_what_is_still_to_be_put_back) {
  Bench bench;
  EXPECT_EQ(bench.run("status").out, "no halfwatt holds a card\n");
  bench.leave_changed();
  const Outcome text = bench.run("status");
  EXPECT_NE(text.out.find("nobody holds it; found at 350 W, set to 200 W"), std::string::npos)
      << text.out;
  const auto json = nlohmann::json::parse(bench.run("status --json").out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["device"], bench.fake.card().uuid);
  EXPECT_EQ(json[0]["held"], false);
  EXPECT_EQ(json[0]["found_w"], 350.0);
  EXPECT_TRUE(json[0]["pid"].is_null());
}

TEST(GuardianVerb, makes_the_program_a_guardian_whose_card_is_shown_and_refused_to_others) {
  Bench bench;
  const char* program = std::getenv("HALFWATT_PROGRAM");
  ASSERT_NE(program, nullptr);
  GuardianOrder order{{bench.fake.card().uuid}, bench.state};
  order.program = program;
  auto client = GuardianClient::start(order);
  ASSERT_TRUE(client) << client.error().message;
  ASSERT_TRUE((*client)->set(Watts(200)));
  const auto json = nlohmann::json::parse(bench.run("status --json").out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["held"], true);
  EXPECT_EQ(json[0]["pid"], ::getpid());
  EXPECT_EQ(json[0]["set_w"], 200.0);
  for (const std::string words : {"limit 300", "restore"}) {
    const Outcome refused = bench.run(words);
    EXPECT_EQ(refused.status, 3) << words;
    EXPECT_NE(refused.err.find("is held by process"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(bench.fake.requested_mw(), 200'000U);
  EXPECT_TRUE((*client)->restore());
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

TEST(GuardianVerb, is_nothing_that_a_person_can_use) {
  const Outcome outcome = run_program("__guardian", "</dev/null");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("starts for itself"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt
