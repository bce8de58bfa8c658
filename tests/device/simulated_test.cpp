#include "device/simulated.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/rng.h"

namespace halfwatt {
namespace {

const DeviceId kId{DeviceId::Kind::simulated, "card"};

class SimulatedCardTest : public testing::Test {
 protected:
  double read(SignalId id) { return card.read()->operator[](id).value(); }
  double energy() { return card.energy()->value(); }
  void sleep(double seconds) { clock.sleep_until(clock.now() + Seconds(seconds)); }

  CardModel model;
  VirtualClock clock;
  SimulatedCard card{kId, model, clock};
};

TEST_F(SimulatedCardTest, says_that_it_is_simulated_and_what_it_can_do) {
  const DeviceInfo& info = card.info();
  EXPECT_TRUE(info.simulated);
  EXPECT_EQ(info.id.text(), "sim:card");
  EXPECT_EQ(info.name, model.name);
  EXPECT_EQ(info.limits, model.limits);
  EXPECT_EQ(info.energy_tick, model.energy_tick);
  EXPECT_NEAR(*info.energy_error, 0.03, 1e-12);  // a gain of 0.97
}

TEST_F(SimulatedCardTest, begins_idle_at_ambient_temperature_and_the_preset_limit) {
  EXPECT_EQ(card.limit(), *model.limits.preset);
  EXPECT_EQ(read(SignalId::power), 30 * 0.97);
  EXPECT_EQ(read(SignalId::temperature), 25);
  EXPECT_EQ(energy(), 0);
}

TEST_F(SimulatedCardTest, begins_at_its_highest_limit_where_the_vendor_set_none) {
  model.limits.preset = std::nullopt;
  EXPECT_EQ(SimulatedCard(kId, model, clock).limit(), model.limits.max);
}

TEST_F(SimulatedCardTest, draws_what_the_load_demands_up_to_the_limit) {
  card.set_demand(Watts(200));
  EXPECT_DOUBLE_EQ(read(SignalId::power), 200 * 0.97);
  card.set_demand(Watts(420));
  EXPECT_DOUBLE_EQ(read(SignalId::power), 390 * 0.97);
  ASSERT_TRUE(card.set_limit(Watts(300)));
  EXPECT_DOUBLE_EQ(read(SignalId::power), 300 * 0.97);
  EXPECT_EQ(read(SignalId::requested_limit), 300);
  EXPECT_EQ(read(SignalId::enforced_limit), 300);
  card.set_demand(std::nullopt);
  EXPECT_DOUBLE_EQ(read(SignalId::power), 30 * 0.97);
}

TEST_F(SimulatedCardTest, tells_nothing_of_what_it_has_not) {
  for (const SignalId id : {SignalId::sm_clock, SignalId::memory_clock, SignalId::fan}) {
    EXPECT_EQ(card.read()->operator[](id), std::nullopt);
  }
}

TEST_F(SimulatedCardTest, refuses_limits_outside_its_range) {
  for (const double limit : {149.9, 480.1, 0.0, -300.0, std::nan("")}) {
    const auto result = card.set_limit(Watts(limit));
    ASSERT_FALSE(result) << limit;
    EXPECT_EQ(result.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(card.limit(), Watts(390));
  }
  EXPECT_EQ(card.set_limit(Watts(500)).error().message,
            "sim:card: 500 W is outside the card's 150 to 480 W");
  EXPECT_TRUE(card.set_limit(Watts(150)));
  EXPECT_TRUE(card.set_limit(Watts(480)));
}

TEST_F(SimulatedCardTest, counts_the_time_in_which_its_cap_was_binding) {
  card.set_demand(Watts(400));
  sleep(10);
  card.set_demand(Watts(100));
  sleep(10);
  EXPECT_EQ(read(SignalId::power_capped_time), 10);
}

TEST_F(SimulatedCardTest, moves_its_energy_counter_only_at_ticks) {
  card.set_demand(Watts(200));
  const double watts = 200 * 0.97;
  double shown = 0;
  for (int millisecond = 1; millisecond <= 1000; ++millisecond) {
    // Between milliseconds, where rounding does not decide on which side of a tick it is.
    clock.sleep_until(Seconds((millisecond - 0.5) / 1000));
    const double now = energy();
    const bool tick = (millisecond - 1) % 100 == 0 && millisecond > 1;
    EXPECT_EQ(now != shown, tick) << millisecond;
    EXPECT_NEAR(now, watts * std::floor((millisecond - 0.5) / 100) / 10, 1e-9);
    shown = now;
  }
}

TEST_F(SimulatedCardTest, approaches_the_temperature_of_its_power_with_its_time_constant) {
  card.set_demand(Watts(300));
  const double rise = model.kelvin_per_watt * 300;
  sleep(model.thermal_time.value());
  EXPECT_NEAR(read(SignalId::temperature), 25 + rise * (1 - std::exp(-1)), 1e-9);
  sleep(20 * model.thermal_time.value());
  EXPECT_NEAR(read(SignalId::temperature), 25 + rise, 1e-6);
  card.set_demand(std::nullopt);
  sleep(1000);
  EXPECT_NEAR(read(SignalId::temperature), 25 + model.kelvin_per_watt * 30, 1e-6);
}

/// A load that changes limit and demand now and then, with what the counter must show.
class RandomLoad {
 public:
  RandomLoad(std::uint64_t seed, const CardModel& model) : rng_(seed), model_(model) {}

  /// Runs for about a minute; `often` reads the card at random times in between.
  void run(SimulatedCard& card, VirtualClock& clock, bool often) {
    Rng reading(7);
    double draw = model_.idle.value();
    for (int i = 0; i < 50; ++i) {
      const double from = clock.now().value();
      const double until = from + rng_.uniform(0.001, 2.5);
      while (often && clock.now().value() < until) {
        clock.sleep_until(Seconds(std::min(until, clock.now().value() + reading.uniform())));
        ASSERT_TRUE(card.read());
      }
      clock.sleep_until(Seconds(until));
      pieces_.push_back({from, until, draw});
      const Watts limit(rng_.uniform(150, 480));
      const Watts demand(rng_.uniform(50, 500));
      ASSERT_TRUE(card.set_limit(limit));
      card.set_demand(demand);
      draw = std::min(limit, demand).value();
    }
  }

  /// Integral of the power shown, up to the last tick.
  double joules(Seconds now) const {
    const double end = std::floor(now / model_.energy_tick) * model_.energy_tick.value();
    double sum = 0;
    for (const auto& [from, until, watts] : pieces_) {
      sum += watts * model_.meter_gain * std::max(0.0, std::min(until, end) - from);
    }
    return sum;
  }

 private:
  struct Piece {
    double from;
    double until;
    double watts;
  };
  Rng rng_;
  CardModel model_;
  std::vector<Piece> pieces_;
};

TEST(SimulatedCard, shows_the_integral_of_its_power_however_often_it_is_read) {
  const CardModel model;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    VirtualClock clock;
    VirtualClock other_clock;
    SimulatedCard often(kId, model, clock);
    SimulatedCard seldom(kId, model, other_clock);
    RandomLoad load(seed, model);
    load.run(often, clock, true);
    RandomLoad(seed, model).run(seldom, other_clock, false);
    ASSERT_EQ(clock.now(), other_clock.now());
    EXPECT_NEAR(often.energy()->value(), load.joules(clock.now()), 1e-6) << seed;
    EXPECT_NEAR(seldom.energy()->value(), often.energy()->value(), 1e-6) << seed;
    const Sample a = *often.read();
    const Sample b = *seldom.read();
    EXPECT_NEAR(*a[SignalId::temperature], *b[SignalId::temperature], 1e-9) << seed;
    EXPECT_NEAR(*a[SignalId::power_capped_time], *b[SignalId::power_capped_time], 1e-9);
  }
}

}  // namespace
}  // namespace halfwatt
