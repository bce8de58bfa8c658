#include "device/card_group.h"

#include <gtest/gtest.h>

#include "device/fake_machine.h"
#include "device/simulated.h"

namespace halfwatt {
namespace {

/// A card that tells what the test says.
class ToldCard final : public Device {
 public:
  explicit ToldCard(const std::string& uuid) {
    told.id = {DeviceId::Kind::gpu_uuid, uuid};
    told.name = "Card";
    told.limits = LimitRange{Watts(100), Watts(400), Watts(350)};
    told.energy_tick = Seconds(0.1);
    told.energy_error = 0.06;
    told.energy_method = EnergyMethod::counter;
    counter = Joules(1000);
  }
  const DeviceInfo& info() const override { return told; }
  Result<Sample> read() override {
    return lost ? Result<Sample>(Error{ErrorKind::device, told.id.text() + ": lost"})
                : Result<Sample>(sample);
  }
  std::optional<Joules> energy() override {
    ++energy_calls;
    return counter;
  }

  DeviceInfo told;
  Sample sample;
  std::optional<Joules> counter;
  int energy_calls = 0;
  bool lost = false;
};

/// A group of told cards, and the cards.
struct Cards {
  std::vector<ToldCard*> each;
  std::vector<std::unique_ptr<Device>> owned;

  explicit Cards(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto card = std::make_unique<ToldCard>("GPU-" + std::to_string(count - i));
      each.push_back(card.get());
      owned.push_back(std::move(card));
    }
  }
  std::unique_ptr<CardGroup> group(GroupUse use = GroupUse::limited) {
    auto made = CardGroup::make(std::move(owned), use);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  void tell(SignalId id, const std::vector<std::optional<double>>& values) {
    for (std::size_t i = 0; i < each.size(); ++i) {
      each[i]->sample[id] = values[i];
    }
  }
};

std::optional<double> read(CardGroup& group, SignalId id) { return (*group.read())[id]; }

TEST(CardGroup, is_named_by_what_it_consists_of_in_an_order_of_its_own) {
  Cards cards(2);
  const auto group = cards.group();
  EXPECT_EQ(group->info().name, "2 x Card");
  EXPECT_EQ(group->info().id.text(), "GPU-1,GPU-2");
  EXPECT_EQ(group->info().id, *DeviceId::parse("GPU-1,GPU-2"));
  Cards unlike(3);
  unlike.each[1]->told.name = "Other";
  EXPECT_EQ(unlike.group()->info().name, "2 x Card, 1 x Other");
}

TEST(CardGroup, adds_what_adds_up_and_shows_the_worst_of_the_rest) {
  Cards cards(2);
  const auto group = cards.group();
  cards.tell(SignalId::power, {200.0, 150.0});
  cards.tell(SignalId::memory_used, {1e9, 2e9});
  cards.tell(SignalId::foreign_processes, {0.0, 1.0});
  cards.tell(SignalId::sm_clock, {1700.0, 1500.0});
  cards.tell(SignalId::temperature, {60.0, 70.0});
  cards.tell(SignalId::fan, {30.0, 55.0});
  cards.tell(SignalId::event_reasons, {4.0, 33.0});
  EXPECT_EQ(read(*group, SignalId::power), 350);
  EXPECT_EQ(read(*group, SignalId::memory_used), 3e9);
  EXPECT_EQ(read(*group, SignalId::foreign_processes), 1);
  EXPECT_EQ(read(*group, SignalId::sm_clock), 1500);
  EXPECT_EQ(read(*group, SignalId::temperature), 70);
  EXPECT_EQ(read(*group, SignalId::fan), 55);
  EXPECT_EQ(read(*group, SignalId::event_reasons), 37);
}

TEST(CardGroup, does_not_know_what_one_card_does_not_tell) {
  Cards cards(2);
  const auto group = cards.group();
  for (const SignalId id : {SignalId::power, SignalId::sm_clock, SignalId::temperature,
                            SignalId::foreign_processes, SignalId::power_capped_time}) {
    cards.tell(id, {5.0, std::nullopt});
    EXPECT_EQ(read(*group, id), std::nullopt);
  }
  cards.each[1]->counter.reset();
  EXPECT_EQ(group->energy(), std::nullopt);
}

TEST(CardGroup, is_lost_with_one_of_its_cards) {
  Cards cards(2);
  const auto group = cards.group();
  cards.each[1]->lost = true;
  ASSERT_FALSE(group->read());
  EXPECT_EQ(group->read().error().message, "GPU-1: lost");
}

TEST(CardGroup, shows_a_card_whose_limit_is_not_that_of_the_others) {
  Cards cards(3);
  const auto group = cards.group();
  const auto shows = [&](const std::vector<std::optional<double>>& requested,
                         const std::vector<std::optional<double>>& enforced) {
    cards.tell(SignalId::requested_limit, requested);
    cards.tell(SignalId::enforced_limit, enforced);
    return read(*group, SignalId::requested_limit) == 250 &&
           read(*group, SignalId::enforced_limit) == 250;
  };
  EXPECT_TRUE(shows({250.0, 250.0, 250.0}, {250.0, 250.0, 250.0}));
  EXPECT_FALSE(shows({250.0, 200.0, 250.0}, {250.0, 200.0, 250.0})) << "lowered";
  EXPECT_FALSE(shows({250.0, 350.0, 250.0}, {250.0, 350.0, 250.0})) << "raised, or not taken";
  EXPECT_FALSE(shows({250.0, 250.0, 250.0}, {250.0, 180.0, 250.0})) << "capped by something";
}

TEST(CardGroup, lets_times_grow_by_the_card_that_is_slowed_most_now) {
  Cards cards(2);
  const auto group = cards.group();
  const SignalId id = SignalId::power_capped_time;
  cards.tell(id, {5000.0, 1.0});  // the first one was slowed long ago
  const double begun = *read(*group, id);
  cards.tell(id, {5000.0, 3.0});
  EXPECT_EQ(*read(*group, id) - begun, 2);
  cards.tell(id, {5004.0, 4.0});
  EXPECT_EQ(*read(*group, id) - begun, 6);
}

TEST(CardGroup, sums_energy_on_the_ticks_of_one_card_and_asks_the_others_only_then) {
  Cards cards(8);
  const auto group = cards.group();
  EXPECT_EQ(group->energy(), Joules(8000));
  cards.each[3]->counter = Joules(1010);
  EXPECT_EQ(group->energy(), Joules(8000)) << "no tick of the first card yet";
  EXPECT_EQ(cards.each[7]->energy_calls, 1);
  cards.each[0]->counter = Joules(1020);
  EXPECT_EQ(group->energy(), Joules(8030));
  EXPECT_EQ(cards.each[7]->energy_calls, 2);
  EXPECT_EQ(cards.each[0]->energy_calls, 3);
}

TEST(CardGroup, takes_its_ticks_from_the_card_that_ticks_slowest) {
  Cards cards(2);
  cards.each[1]->told.energy_tick = Seconds(0.5);
  const auto group = cards.group();
  EXPECT_EQ(group->info().energy_tick, Seconds(0.5));
  EXPECT_EQ(group->energy(), Joules(2000));
  cards.each[0]->counter = Joules(1010);
  EXPECT_EQ(group->energy(), Joules(2000));
  cards.each[1]->counter = Joules(1050);
  EXPECT_EQ(group->energy(), Joules(2060));
}

TEST(CardGroup, falls_when_the_counter_of_one_card_does) {
  Cards cards(2);
  const auto group = cards.group();
  cards.each[1]->counter = Joules(5);
  const auto before = group->energy();
  cards.each[0]->counter = Joules(1100);
  cards.each[1]->counter = Joules(1);
  EXPECT_LT(group->energy(), before);
  cards.each[0]->counter = Joules(1200);
  EXPECT_EQ(group->energy(), Joules(1201));
}

TEST(CardGroup, has_no_counter_where_one_card_has_none) {
  Cards cards(2);
  cards.each[1]->told.energy_method = EnergyMethod::power_integral;
  cards.each[1]->told.energy_tick.reset();
  cards.each[1]->told.energy_error = 0.11;
  const auto group = cards.group();
  EXPECT_EQ(group->info().energy_method, EnergyMethod::power_integral);
  EXPECT_EQ(group->info().energy_tick, std::nullopt);
  EXPECT_EQ(group->info().energy_error, 0.11);
  EXPECT_EQ(group->energy(), std::nullopt);
}

TEST(CardGroup, refuses_one_limit_for_cards_that_take_unlike_ones) {
  Cards cards(2);
  cards.each[1]->told.limits = LimitRange{Watts(100), Watts(300), Watts(300)};
  const auto refused = CardGroup::make(std::move(cards.owned), GroupUse::limited);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "GPU-2 takes 100-400 W and GPU-1 takes 100-300 W, and one limit is set for all "
            "cards of a job; needed cards of one range in --device, or --measure-only");
  Cards measured(2);
  measured.each[1]->told.limits.reset();
  EXPECT_EQ(measured.group(GroupUse::measured)->info().limits, std::nullopt);
  Cards alike(2);
  alike.each[1]->told.limits->preset = Watts(300);
  EXPECT_EQ(alike.group()->info().limits, (LimitRange{Watts(100), Watts(400), std::nullopt}));
}

TEST(CardGroup, counts_the_joules_of_eight_cards_that_do_not_tick_together) {
  VirtualClock clock;
  std::vector<std::unique_ptr<Device>> cards;
  std::vector<SimulatedCard*> each;
  for (int i = 0; i < 8; ++i) {
    auto card = std::make_unique<SimulatedCard>(
        DeviceId{DeviceId::Kind::simulated, std::to_string(i)}, CardModel{}, clock);
    each.push_back(card.get());
    cards.push_back(std::move(card));
    clock.sleep_until(clock.now() + Seconds(0.013));
  }
  for (SimulatedCard* card : each) {
    card->set_demand(Watts(300));
  }
  auto made = CardGroup::make(std::move(cards), GroupUse::limited);
  ASSERT_TRUE(made);
  CardGroup& group = **made;
  const auto next_edge = [&] {
    const Joules before = *group.energy();
    while (*group.energy() == before) {
      clock.sleep_until(clock.now() + Seconds(0.002));
    }
    return clock.now();
  };
  const Seconds begun = next_edge();
  const Joules first = *group.energy();
  Seconds ended = begun;
  for (int tick = 0; tick < 20; ++tick) {
    ended = next_edge();
  }
  const double drawn = 8 * 300 * 0.97 * (ended - begun).value();
  EXPECT_NEAR((*group.energy() - first).value() / drawn, 1, 7.0 / (8 * 20));
}

TEST(CardGroup, reads_eight_cards_of_the_driver) {
  const FakeMachine machine(FakeNvml::cards(8));
  std::vector<std::unique_ptr<Device>> cards;
  for (std::size_t i = 0; i < 8; ++i) {
    auto card = machine.open_card(i);
    ASSERT_TRUE(card);
    cards.push_back(std::move(*card));
  }
  auto group = CardGroup::make(std::move(cards), GroupUse::limited);
  ASSERT_TRUE(group);
  const auto sample = (*group)->read();
  ASSERT_TRUE(sample);
  EXPECT_NEAR((*sample)[SignalId::power].value(), 8 * 320, 8 * 5);
  EXPECT_EQ((*sample)[SignalId::requested_limit], 350);
  EXPECT_EQ((*sample)[SignalId::foreign_processes], 0);
  EXPECT_GE((*group)->energy(), Joules(8000));
}

}  // namespace
}  // namespace halfwatt
