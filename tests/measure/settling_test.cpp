#include "measure/settling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace halfwatt {
namespace {

using State = Settling::State;

/// A workload and a thermometer as functions of time.
struct World {
  double first_step = 0.25;  ///< s
  double later_step = 0.25;
  double change_at = 0;  ///< s: from then on steps take `later_step`
  std::function<std::optional<double>(double)> temperature = [](double) { return 60.0; };

  Observation at(double now) const {
    const double early = std::floor(std::min(now, change_at) / first_step);
    const double late = now > change_at ? std::floor((now - change_at) / later_step) : 0;
    Observation seen;
    seen.now = Seconds(now);
    seen.work.count = early + late;
    seen.work.at = Seconds(late > 0 ? change_at + late * later_step : early * first_step);
    seen.sample = Sample();
    (*seen.sample)[SignalId::temperature] = temperature(now);
    return seen;
  }
};

struct Outcome {
  State state = State::waiting;
  double at = 0;  ///< s
};

Outcome settle(const World& world, const SettlingRules& rules) {
  Settling settling(rules);
  Outcome outcome;
  while (outcome.at < 10'000) {
    outcome.state = settling.feed(world.at(outcome.at));
    if (outcome.state != State::waiting) {
      break;
    }
    outcome.at += settling.pause().value();
  }
  return outcome;
}

TEST(Settling, is_over_soon_where_everything_is_steady) {
  const Outcome outcome = settle(World{}, SettlingRules{});
  EXPECT_EQ(outcome.state, State::settled);
  EXPECT_GE(outcome.at, 5);  // a slope of the temperature takes that long to be seen
  EXPECT_LE(outcome.at, 6);
}

TEST(Settling, begins_anew_after_a_stop) {
  Settling settling(SettlingRules{});
  double now = 0;
  for (; now < 4; now += 0.5) {
    EXPECT_EQ(settling.feed(World{}.at(now)), State::waiting);
  }
  now += 600;  // the card has cooled down meanwhile
  const double continued = now;
  State state = State::waiting;
  for (; state == State::waiting && now < continued + 100; now += 0.5) {
    Observation seen = World{}.at(now);
    seen.work.stops = 1;
    state = settling.feed(seen);
  }
  EXPECT_EQ(state, State::settled);
  EXPECT_GE(now, continued + 5);
}

TEST(Settling, needs_no_thermometer) {
  World world;
  world.temperature = [](double) { return std::nullopt; };
  const Outcome outcome = settle(world, SettlingRules{});
  EXPECT_EQ(outcome.state, State::settled);
  EXPECT_GE(outcome.at, 2);  // at least
  EXPECT_LE(outcome.at, 3);
}

TEST(Settling, lasts_at_least_as_long_as_the_rules_say) {
  SettlingRules rules;
  rules.at_least = Seconds(12);
  const Outcome outcome = settle(World{}, rules);
  EXPECT_EQ(outcome.state, State::settled);
  EXPECT_GE(outcome.at, 12);
  EXPECT_LE(outcome.at, 13);
}

TEST(Settling, waits_while_the_temperature_moves) {
  World world;  // 0.1 K/s is reached after 20 s * ln(40 / 20 / 0.1) = 60 s
  world.temperature = [](double now) { return 65 - 40 * std::exp(-now / 20); };
  SettlingRules rules;
  rules.at_most = Seconds(300);
  const Outcome outcome = settle(world, rules);
  EXPECT_EQ(outcome.state, State::settled);
  EXPECT_GE(outcome.at, 60);
  EXPECT_LE(outcome.at, 68);
}

TEST(Settling, waits_while_the_card_cools_down) {
  World world;
  world.temperature = [](double now) { return now < 20 ? 80 - now : 60.0; };
  const Outcome outcome = settle(world, SettlingRules{});
  EXPECT_EQ(outcome.state, State::settled);
  EXPECT_GE(outcome.at, 25);
}

TEST(Settling, waits_until_steps_take_the_same_time_again) {
  World world;
  world.temperature = [](double) { return std::nullopt; };
  world.later_step = 0.27;  // 8 % longer
  world.change_at = 1.5;
  const Outcome steady = settle(World{.temperature = world.temperature}, SettlingRules{});
  const Outcome outcome = settle(world, SettlingRules{});
  EXPECT_EQ(outcome.state, State::settled);
  EXPECT_GT(outcome.at, steady.at);
  EXPECT_LE(outcome.at, 6);
}

TEST(Settling, gives_up_at_its_bound) {
  World world;
  world.temperature = [](double now) { return 20 + now; };
  const Outcome outcome = settle(world, SettlingRules{});
  EXPECT_EQ(outcome.state, State::gave_up);
  EXPECT_GE(outcome.at, 60);
  EXPECT_LE(outcome.at, 61);
}

TEST(Settling, gives_up_where_no_step_is_done) {
  World world;
  world.first_step = world.later_step = 1e9;
  const Outcome outcome = settle(world, SettlingRules{});
  EXPECT_EQ(outcome.state, State::gave_up);
  EXPECT_LE(outcome.at, 61);
}

TEST(Settling, compares_single_steps_where_they_are_longer_than_a_block) {
  World world;
  world.first_step = world.later_step = 12;
  const Outcome outcome = settle(world, SettlingRules{});
  EXPECT_EQ(outcome.state, State::settled);
  EXPECT_GE(outcome.at, 24);  // two steps
  EXPECT_LE(outcome.at, 25);
}

TEST(Settling, of_the_warm_up_bears_a_slope_of_half_a_degree_in_half_a_minute) {
  World world;
  world.temperature = [](double now) { return 60 + now * 0.4 / 30; };
  EXPECT_EQ(settle(world, warm_up_rules()).state, State::settled);
  world.temperature = [](double now) { return 60 + now * 0.6 / 30; };
  const Outcome outcome = settle(world, warm_up_rules());
  EXPECT_EQ(outcome.state, State::gave_up);
  EXPECT_GE(outcome.at, 300);
  EXPECT_LE(outcome.at, 301);
}

}  // namespace
}  // namespace halfwatt
