#include "guard/nvml_limit.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>

#include "fake_nvml/fake_nvml.h"
#include "guard/cards.h"
#include "guard/guardian_client.h"
#include "guard/journal.h"

namespace halfwatt {
namespace {

constexpr const char* kSet = "nvmlDeviceSetPowerManagementLimit*";

fake_nvml::Script with_fault(const fake_nvml::Fault& fault) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.faults.push_back(fault);
  return script;
}

fake_nvml::Fault refusal(std::uint32_t code) {
  fake_nvml::Fault fault;
  fault.symbol = kSet;
  fault.code = code;
  return fault;
}

/// A guardian on fake cards.
struct Bench {
  FakeNvml fake;

  explicit Bench(fake_nvml::Script script = FakeNvml::cards(1),
                 NvmlVariant variant = NvmlVariant::modern)
      : fake(std::move(script)) {
    fake.enter_environment(variant);
  }
  GuardianOrder order() { return {{fake.card().uuid}, (fake.folder() / "state").string()}; }
  Result<std::unique_ptr<GuardianClient>> start() { return GuardianClient::start(order()); }
};

TEST(NvmlLimit, is_read_set_and_put_back_through_the_real_library_path) {
  for (const NvmlVariant variant : {NvmlVariant::modern, NvmlVariant::old}) {
    Bench bench(FakeNvml::cards(1), variant);
    auto client = bench.start();
    ASSERT_TRUE(client) << client.error().message;
    const LimitState& found = (*client)->states()[0];
    EXPECT_EQ(found.requested, Watts(350));
    EXPECT_EQ(found.range, (LimitRange{Watts(100), Watts(390), Watts(350)}));
    EXPECT_EQ(found.persistence, true);
    EXPECT_EQ((*client)->set(Watts(200)).value(), Watts(200));
    EXPECT_EQ(bench.fake.requested_mw(), 200'000U);
    ASSERT_TRUE((*client)->restore());
    EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
  }
}

TEST(NvmlLimit, is_written_by_the_guardian_alone) {
  Bench bench;
  auto client = bench.start();
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->set(Watts(200)));
  ASSERT_FALSE(bench.fake.writes().empty());
  for (const LimitWrite& write : bench.fake.writes()) {
    EXPECT_EQ(write.pid, (*client)->guardian_pid());
  }
}

TEST(NvmlLimit, names_the_ways_out_where_permission_is_missing_before_anything_starts) {
  Bench bench(with_fault(refusal(4)));
  const auto client = bench.start();
  ASSERT_FALSE(client);
  EXPECT_EQ(exit_code(client.error().kind), 3);
  for (const std::string way : {"no permission", "sudo", "CAP_SYS_ADMIN", "--measure-only"}) {
    EXPECT_NE(client.error().message.find(way), std::string::npos) << client.error().message;
  }
  EXPECT_TRUE(Journal(bench.fake.folder() / "state").cards().empty());
}

TEST(NvmlLimit, says_that_a_card_takes_none) {
  Bench bench(with_fault(refusal(3)));
  const auto client = bench.start();
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message.find("--measure-only"), std::string::npos);
}

TEST(NvmlLimit, is_never_touched_on_a_card_that_is_cut_in_slices) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].mig_enabled = true;
  script.cards[0].mig_slices = 2;
  Bench bench(std::move(script));
  const auto client = bench.start();
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message.find("MIG"), std::string::npos);
  EXPECT_TRUE(bench.fake.writes().empty());
}

TEST(NvmlLimit, has_its_top_where_something_else_caps_the_card) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].cap_mw = 250'000;
  Bench bench(std::move(script));
  auto client = bench.start();
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ((*client)->found(), Watts(350));
  EXPECT_EQ((*client)->top(), Watts(250));
}

TEST(NvmlLimit, shows_in_what_set_returns_that_the_card_only_claimed_success) {
  fake_nvml::Fault fault;
  fault.symbol = kSet;
  fault.ignore = true;
  fault.armed = false;
  Bench bench(with_fault(fault));
  auto client = bench.start();
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->set(Watts(300)));
  bench.fake.arm(0);
  EXPECT_EQ((*client)->set(Watts(200)).value(), Watts(300));
  const auto back = (*client)->restore();
  ASSERT_FALSE(back);
  EXPECT_EQ(exit_code(back.error().kind), 6);
  bench.fake.disarm(0);
  auto next = bench.start();  // the entry was kept
  ASSERT_TRUE(next);
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

TEST(NvmlLimit, that_the_card_rounds_down_is_ours_and_is_put_back) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].limit_step_mw = 2500;
  Bench bench(std::move(script));
  auto client = bench.start();
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->set(Watts(201)).value(), Watts(200));
  EXPECT_EQ((*client)->set(Watts(184)).value(), Watts(182.5));
  EXPECT_TRUE((*client)->restore());
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

TEST(NvmlLimit, is_put_back_also_where_a_coarse_step_moves_it_far) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].limit_step_mw = 10'000;
  Bench bench(std::move(script));
  auto client = bench.start();
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->set(Watts(209)).value(), Watts(200));
  EXPECT_TRUE((*client)->restore());
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

/// A card that puts `instead_mw` in place of the first limit that is written to it.
fake_nvml::Script with_odd_first_set(std::uint32_t instead_mw) {
  fake_nvml::Fault fault;
  fault.symbol = kSet;
  fault.set_instead_mw = instead_mw;
  fault.until_call = 1;
  return with_fault(fault);
}

TEST(NvmlLimit, is_put_back_where_the_proof_itself_moved_it) {
  Bench bench(with_odd_first_set(340'000));
  const auto client = bench.start();
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message.find("340 W"), std::string::npos);
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
  EXPECT_TRUE(Journal(bench.fake.folder() / "state").cards().empty());
}

TEST(NvmlLimit, stays_in_the_journal_where_the_proof_moved_it_and_it_may_be_a_strangers) {
  Bench bench(with_odd_first_set(250'000));
  const auto client = bench.start();
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message.find("stands at 250 W"), std::string::npos);
  EXPECT_NE(client.error().message.find("--force writes 350 W"), std::string::npos);
  EXPECT_EQ(Journal(bench.fake.folder() / "state").cards().size(), 1U);
}

TEST(NvmlLimit, is_held_by_the_next_guardian_when_the_first_dies_over_its_first_write) {
  for (const bool after : {false, true}) {
    fake_nvml::Fault fault;
    fault.symbol = kSet;
    fault.until_call = 1;
    (after ? fault.raise_after : fault.raise_before) = SIGKILL;
    Bench bench(with_fault(fault));
    auto client = bench.start();
    ASSERT_TRUE(client) << client.error().message;
    EXPECT_EQ((*client)->set(Watts(200)).value(), Watts(200));
    EXPECT_TRUE((*client)->restore());
    EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
  }
}

TEST(NvmlLimit, that_the_driver_took_back_is_not_fought_over) {
  Bench bench;
  auto client = bench.start();
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->set(Watts(200)));
  bench.fake.set_requested(390'000);
  EXPECT_FALSE((*client)->set(Watts(250)));
  EXPECT_FALSE((*client)->restore());
  EXPECT_EQ(bench.fake.requested_mw(), 390'000U);
}

TEST(NvmlLimit, is_put_back_at_the_next_start_when_the_set_itself_kills_the_guardian) {
  for (const bool after : {false, true}) {
    fake_nvml::Fault fault;
    fault.symbol = kSet;
    fault.armed = false;
    (after ? fault.raise_after : fault.raise_before) = SIGKILL;
    Bench bench(with_fault(fault));
    auto client = bench.start();
    ASSERT_TRUE(client);
    ASSERT_TRUE((*client)->set(Watts(300)));
    bench.fake.arm(0);
    EXPECT_FALSE((*client)->set(Watts(200)));  // every guardian dies over it
    bench.fake.disarm(0);
    client->reset();
    auto next = bench.start();
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
  }
}

// The guardian dies over its second set, when the card has it.
TEST(NvmlLimit, that_was_rounded_is_put_back_where_the_guardian_died_before_it_was_read) {
  fake_nvml::Fault fault;
  fault.symbol = kSet;
  fault.from_call = 2;
  fault.until_call = 2;
  fault.raise_after = SIGKILL;
  fake_nvml::Script script = with_fault(fault);
  script.cards[0].limit_step_mw = 2500;
  Bench bench(std::move(script));
  auto client = bench.start();
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->set(Watts(184)).value(), Watts(182.5)) << "the next one sets it again";
  EXPECT_FALSE((*client)->check());
  EXPECT_TRUE((*client)->restore());
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

TEST(NvmlLimit, goes_back_when_the_card_answers_again_after_no_guardian_could_take_over) {
  fake_nvml::Fault fault;
  fault.symbol = "nvmlDeviceGetPowerManagementLimit*";
  fault.code = 999;
  fault.armed = false;
  Bench bench(with_fault(fault));
  auto client = bench.start();
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->set(Watts(200)));
  bench.fake.arm(0);
  ASSERT_EQ(::kill((*client)->guardian_pid(), SIGKILL), 0);
  ASSERT_TRUE(wait_until([&] { return !(*client)->alive(); }));
  Result<void> told;
  ASSERT_TRUE(wait_until([&] {
    told = (*client)->check();
    return !told;
  }));
  EXPECT_NE(told.error().message.find("no other one could take over"), std::string::npos);
  EXPECT_EQ(bench.fake.requested_mw(), 200'000U);
  bench.fake.disarm(0);
  EXPECT_TRUE((*client)->restore());
  EXPECT_EQ(bench.fake.requested_mw(), 350'000U);
}

TEST(NvmlLimit, is_set_on_eight_cards_or_on_none) {
  constexpr std::size_t kCards = 8;
  fake_nvml::Script script = FakeNvml::cards(kCards);
  fake_nvml::Fault fault = refusal(999);
  fault.card = kCards - 1;
  fault.armed = false;
  script.faults.push_back(fault);
  Bench bench(std::move(script));
  GuardianOrder order = bench.order();
  for (std::size_t card = 1; card < kCards; ++card) {
    order.cards.push_back(bench.fake.card(card).uuid);
  }
  auto client = GuardianClient::start(order);
  ASSERT_TRUE(client) << client.error().message;
  const auto all_at = [&bench](std::uint32_t limit_mw) {
    for (std::size_t card = 0; card < kCards; ++card) {
      EXPECT_EQ(bench.fake.requested_mw(card), limit_mw) << card;
    }
  };
  ASSERT_TRUE((*client)->set(Watts(250)));
  all_at(250'000);
  bench.fake.arm(0);
  EXPECT_FALSE((*client)->set(Watts(200)));
  all_at(250'000);
  bench.fake.disarm(0);
  EXPECT_TRUE((*client)->restore());
  all_at(350'000);
}

TEST(NvmlLimit, needs_a_library) {
  Bench bench;
  ::setenv("HALFWATT_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
  const auto client = bench.start();
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind, ErrorKind::device);
}

}  // namespace
}  // namespace halfwatt
