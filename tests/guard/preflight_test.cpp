#include "guard/preflight.h"

#include <gtest/gtest.h>

#include "fake_nvml/fake_nvml.h"

namespace halfwatt {
namespace {

/// A card that gives no reason for a word.
CardFacts plain(const std::string& card = "GPU-a") {
  return {card, false, LimitState{Watts(350), Watts(350), {}, true, false},
          std::vector<pid_t>{}, false};
}

std::vector<std::string> remarks(const std::vector<CardFacts>& cards,
                                 const PreflightTerms& terms = {}) {
  const auto told = preflight(cards, terms);
  EXPECT_TRUE(told) << told.error().message;
  return told ? *told : std::vector<std::string>{};
}

std::string refusal(const CardFacts& card, const PreflightTerms& terms = {}) {
  const auto told = preflight({card}, terms);
  return told ? "none" : told.error().message;
}

TEST(Preflight, has_nothing_to_say_of_a_card_that_is_fit) {
  EXPECT_EQ(remarks({plain(), plain("GPU-b")}), std::vector<std::string>{});
}

TEST(Preflight, refuses_limits_on_a_sliced_card_and_lets_it_be_measured) {
  CardFacts card = plain();
  card.sliced = true;
  EXPECT_NE(refusal(card).find("GPU-a: MIG is on"), std::string::npos);
  EXPECT_NE(refusal(card).find("--measure-only"), std::string::npos);
  EXPECT_EQ(remarks({card}, {.limits = false}),
            std::vector<std::string>{
                "GPU-a: MIG is on: its watts and joules are those of all slices"});
}

TEST(Preflight, refuses_a_card_that_others_use_unless_that_is_accepted) {
  CardFacts card = plain();
  card.processes = {4711};
  EXPECT_EQ(refusal(card),
            "GPU-a: process 4711 computes on it; end it, or accept it with --shared");
  EXPECT_NE(refusal(card, {.limits = false}), "none");
  card.processes = {4711, 4712};
  EXPECT_EQ(refusal(card),
            "GPU-a: processes 4711, 4712 compute on it; end them, or accept it with --shared");
  EXPECT_EQ(remarks({card}, {.shared = true}),
            std::vector<std::string>{
                "GPU-a: processes 4711, 4712 compute on it, too: the limit holds for all of "
                "it, and what it draws counts as the command's"});
}

TEST(Preflight, says_where_others_cannot_be_seen) {
  CardFacts card = plain();
  card.processes_hidden = true;
  ASSERT_EQ(remarks({card}).size(), 1U);
  EXPECT_NE(remarks({card})[0].find("a pid namespace hides processes"), std::string::npos);
  card.processes.reset();
  EXPECT_NE(remarks({card})[0].find("the driver does not list"), std::string::npos);
}

TEST(Preflight, refuses_what_is_seen_even_where_more_is_hidden) {
  CardFacts card = plain();
  card.processes_hidden = true;
  card.processes = {4711};
  EXPECT_NE(refusal(card).find("process 4711"), std::string::npos);
}

TEST(Preflight, says_that_a_limit_is_lost_with_the_driver_where_persistence_is_off) {
  CardFacts card = plain();
  card.limit->persistence = false;
  ASSERT_EQ(remarks({card}).size(), 1U);
  EXPECT_NE(remarks({card})[0].find("persistence mode is off"), std::string::npos);
  EXPECT_EQ(remarks({card}, {.limits = false}), std::vector<std::string>{});
  card.limit->persistence.reset();
  EXPECT_EQ(remarks({card}), std::vector<std::string>{});
}

TEST(Preflight, says_both_limits_where_less_is_enforced_than_requested) {
  CardFacts card = plain();
  card.limit->enforced = Watts(250);
  EXPECT_EQ(remarks({card}), std::vector<std::string>{
                                 "GPU-a: 350 W are requested and 250 W are enforced: something "
                                 "else caps the card, and higher limits would do nothing"});
  card.limit->enforced = Watts(349.9);
  EXPECT_EQ(remarks({card}), std::vector<std::string>{});
}

TEST(Preflight, says_the_same_of_several_cards_once) {
  std::vector<CardFacts> cards = {plain("GPU-a"), plain("GPU-b")};
  for (CardFacts& each : cards) {
    each.limit->persistence = false;
  }
  ASSERT_EQ(remarks(cards).size(), 1U);
  EXPECT_TRUE(remarks(cards)[0].starts_with("GPU-a, GPU-b: persistence"));
  cards.push_back(plain("GPU-c"));
  cards[2].limit->persistence = false;
  EXPECT_TRUE(remarks(cards)[0].starts_with("all 3 cards: persistence"));
}

TEST(CardFacts, are_what_the_driver_tells) {
  fake_nvml::Script script = FakeNvml::cards(2);
  script.cards[0].persistence = false;
  script.cards[0].processes.resize(1);
  script.cards[0].processes[0].pid = 4711;
  script.cards[1].mig_enabled = true;
  FakeNvml fake(script);
  fake.enter_environment();
  const auto library = NvmlLibrary::open(FakeNvml::library());
  ASSERT_TRUE(library);
  const auto facts = card_facts(*library, {fake.card(0).uuid, fake.card(1).uuid});
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ((*facts)[0].card, fake.card(0).uuid);
  EXPECT_EQ((*facts)[0].processes, std::vector<pid_t>{4711});
  EXPECT_EQ((*facts)[0].limit->persistence, false);
  EXPECT_EQ((*facts)[0].limit->requested, Watts(350));
  EXPECT_FALSE((*facts)[0].sliced);
  EXPECT_TRUE((*facts)[1].sliced);
  EXPECT_EQ((*facts)[1].processes, std::vector<pid_t>{});
}

TEST(CardFacts, lack_what_a_call_refuses_and_end_with_a_lost_card) {
  for (const std::uint32_t code : {3U, 4U}) {
    fake_nvml::Script script = FakeNvml::cards(1);
    for (const char* symbol :
         {"nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetComputeRunningProcesses*"}) {
      fake_nvml::Fault fault;
      fault.symbol = symbol;
      fault.code = code;
      script.faults.push_back(fault);
    }
    FakeNvml fake(script);
    fake.enter_environment();
    const auto library = NvmlLibrary::open(FakeNvml::library());
    ASSERT_TRUE(library);
    const auto facts = card_facts(*library, {fake.card().uuid});
    ASSERT_TRUE(facts);
    EXPECT_EQ((*facts)[0].limit, std::nullopt);
    EXPECT_EQ((*facts)[0].processes, std::nullopt);
  }
  fake_nvml::Script script = FakeNvml::cards(1);
  fake_nvml::Fault lost;
  lost.symbol = "nvmlDeviceGetComputeRunningProcesses*";
  lost.code = 15;
  script.faults.push_back(lost);
  FakeNvml fake(script);
  fake.enter_environment();
  const auto library = NvmlLibrary::open(FakeNvml::library());
  ASSERT_TRUE(library);
  EXPECT_FALSE(card_facts(*library, {fake.card().uuid}));
}

}  // namespace
}  // namespace halfwatt
