// Which cards a command runs on, and what is looked at before it starts.

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/fake_cards.h"

namespace halfwatt {
namespace {

using Limits = std::vector<std::uint32_t>;

constexpr const char* kTellCards = " -- sh -c 'echo \"${CUDA_VISIBLE_DEVICES-none}\"'";

std::string last_line(const std::string& text) {
  const std::string whole = text.substr(0, text.empty() ? 0 : text.size() - 1);
  return whole.substr(whole.rfind('\n') + 1);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

fake_nvml::Script with_process(std::uint32_t pid) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].processes.resize(1);
  script.cards[0].processes[0].pid = pid;
  return script;
}

// The program starts nothing and writes nothing, and says one line why.
void expect_refusal(FakeCards& cards,
                    const std::string& words,
                    const std::string& why,
                    const std::string& environment = "") {
  const std::string job = " -- touch '" + cards.folder.path("started") + "'";
  for (const std::string verb : {"run --limit 200", "sweep --limits 200"}) {
    const Outcome outcome = cards.run(verb + cards.state() + words + job, environment);
    EXPECT_EQ(outcome.status, verb.starts_with("run") ? 125 : 3) << outcome.err;
    EXPECT_TRUE(has(last_line(outcome.err), why)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(cards.folder.path("started")));
    EXPECT_TRUE(cards.fake.writes(0).empty());
  }
}

TEST(JobCards, get_one_limit_all_of_them_and_theirs_back) {
  FakeCards cards(2);
  const Outcome outcome =
      cards.run("run --limit 200 --device gpu:0,gpu:1" + cards.state() + kTellCards);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "none\n") << "there are no others to hide";
  for (const std::size_t card : {0U, 1U}) {
    EXPECT_EQ(limits_written(cards.fake, card), (Limits{350'000, 200'000, 350'000}));
  }
}

TEST(JobCards, are_eight_as_well_as_one) {
  FakeCards cards(8);
  const Outcome outcome =
      cards.run("run --limit 200 --device all" + cards.state() + " -- true");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (std::size_t card = 0; card < 8; ++card) {
    EXPECT_EQ(limits_written(cards.fake, card), (Limits{350'000, 200'000, 350'000}));
  }
}

TEST(JobCards, are_shown_alone_to_the_command_when_they_were_named) {
  FakeCards cards(3);
  const Outcome outcome =
      cards.run("run --limit 200 --device gpu:2,gpu:0" + cards.state() + kTellCards);
  const std::string both = cards.fake.card(2).uuid + "," + cards.fake.card(0).uuid;
  EXPECT_EQ(outcome.out, both + "\n");
  EXPECT_TRUE(has(outcome.err, "the command gets CUDA_VISIBLE_DEVICES=" + both + ","))
      << outcome.err;
}

TEST(JobCards, are_those_that_cuda_shows_where_none_was_named) {
  FakeCards cards(3);
  const Outcome outcome =
      cards.run("run --limit 200" + cards.state() + kTellCards, "CUDA_VISIBLE_DEVICES=2,0");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "2,0\n");
  EXPECT_EQ(limits_written(cards.fake, 0), (Limits{350'000, 200'000, 350'000}));
  EXPECT_TRUE(cards.fake.writes(1).empty());
  EXPECT_EQ(limits_written(cards.fake, 2), (Limits{350'000, 200'000, 350'000}));
}

TEST(JobCards, are_asked_for_with_a_list_where_there_are_several) {
  FakeCards cards(2);
  expect_refusal(cards, "",
                 "--device is missing: this machine has several cards, gpu:0 (NVIDIA Fake "
                 "3090), gpu:1 (NVIDIA Fake 3090); needed those that the command uses");
}

TEST(JobCards, are_asked_for_where_cuda_may_mean_another_one) {
  fake_nvml::Script script = FakeNvml::cards(2);
  script.cards[1].name = "NVIDIA Fake 4090";
  FakeCards cards(script);
  expect_refusal(cards, "", "with --device", "CUDA_VISIBLE_DEVICES=0");
  const Outcome certain = cards.run("run --limit 200" + cards.state() + " -- true",
                                    "CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_ORDER=PCI_BUS_ID");
  EXPECT_EQ(certain.status, 0) << certain.err;
}

TEST(JobCards, are_refused_where_cuda_hides_them_from_the_command) {
  FakeCards cards(2);
  expect_refusal(cards, "--device gpu:1",
                 "CUDA_VISIBLE_DEVICES=0 hides " + cards.fake.card(1).uuid,
                 "CUDA_VISIBLE_DEVICES=0");
  expect_refusal(cards, "", "shows the command no card", "CUDA_VISIBLE_DEVICES=-1");
  expect_refusal(cards, "", "no card here has that UUID", "CUDA_VISIBLE_DEVICES=GPU-none");
  const Outcome more = cards.run("run --limit 200 --device gpu:0" + cards.state() + kTellCards,
                                 "CUDA_VISIBLE_DEVICES=0,1");
  EXPECT_EQ(more.status, 0);
  EXPECT_TRUE(has(more.err, "shows the command " + cards.fake.card(1).uuid + ", too"))
      << more.err;
}

TEST(JobCards, are_refused_where_one_limit_does_not_fit_all) {
  fake_nvml::Script script = FakeNvml::cards(2);
  script.cards[1].max_mw = 360'000;
  FakeCards cards(script);
  const Outcome outcome =
      cards.run("sweep --limits 200 --device gpu:0,gpu:1" + cards.state() + " -- true");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(has(last_line(outcome.err), "takes 100-360 W, and one limit is set for all"))
      << outcome.err;
  EXPECT_TRUE(cards.fake.writes(0).empty());
}

TEST(Preflight, refuses_a_sliced_card) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].mig_enabled = true;
  FakeCards cards(script);
  expect_refusal(cards, "", "MIG is on, and a power limit would hit every slice");
  expect_refusal(cards, "", "MIG is on, and a power limit would hit every slice",
                 "CUDA_VISIBLE_DEVICES=MIG-" + cards.fake.card().uuid + "/1/0");
}

TEST(Preflight, refuses_a_card_that_others_use_until_that_is_accepted) {
  FakeCards cards(with_process(4711));
  expect_refusal(cards, "", "process 4711 computes on it; end it, or accept it with --shared");
  const Outcome shared = cards.run("run --limit 200 --shared" + cards.state() + " -- true");
  EXPECT_EQ(shared.status, 0);
  EXPECT_TRUE(has(shared.err, "process 4711 computes on it, too")) << shared.err;
}

TEST(Preflight, says_before_the_job_starts_what_its_user_should_know) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].persistence = false;
  script.cards[0].cap_mw = 300'000;
  FakeCards cards(script);
  std::filesystem::remove(cards.folder.path("root/proc/self/ns/pid"));  // as in a container
  const Outcome outcome = cards.run("run --limit 200" + cards.state() + " -- true");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"persistence mode is off", "a pid namespace hides processes",
                           "350 W are requested and 300 W are enforced"}) {
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
  }
}

TEST(Preflight, ends_in_the_line_about_versions_where_driver_and_library_differ) {
  fake_nvml::Script script = FakeNvml::cards(1);
  fake_nvml::Fault fault;
  fault.symbol = "nvmlInit*";
  fault.code = 18;
  script.faults.push_back(fault);
  FakeCards cards(script);
  expect_refusal(cards, "", "the driver was updated while it was in use");
  const Outcome outcome = cards.run("run --limit 200" + cards.state() + " -- true");
  EXPECT_FALSE(has(outcome.err, "cpu:")) << outcome.err;
  expect_refusal(cards, "--device gpu:0", "the driver was updated while it was in use");
}

}  // namespace
}  // namespace halfwatt
