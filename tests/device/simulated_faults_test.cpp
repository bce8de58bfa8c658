#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "device/simulated.h"

namespace halfwatt {
namespace {

using Kind = Fault::Kind;

const DeviceId kId{DeviceId::Kind::simulated, "card"};

/// A card under a load of 300 W that something happens to between 10 s and 20 s.
class SimulatedFault : public testing::Test {
 protected:
  void suffer(Kind kind, double amount = 0) {
    card.emplace(kId, CardModel{}, clock,
                 std::vector{Fault{kind, Seconds(10), Seconds(20), amount}});
    card->set_demand(Watts(300));
  }
  SimulatedCard& at(double seconds) {
    clock.sleep_until(Seconds(seconds));
    return *card;
  }
  double read(double seconds, SignalId id) {
    return at(seconds).read()->operator[](id).value();
  }

  VirtualClock clock;
  std::optional<SimulatedCard> card;
};

TEST_F(SimulatedFault, set_refused_reports_a_missing_permission_and_keeps_the_limit) {
  suffer(Kind::set_refused);
  EXPECT_TRUE(at(9).set_limit(Watts(250)));
  const auto result = at(15).set_limit(Watts(200));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::device);
  EXPECT_EQ(result.error().message, "sim:card: no permission to set the power limit");
  EXPECT_EQ(card->limit(), Watts(250));
  EXPECT_TRUE(at(20).set_limit(Watts(200)));
}

TEST_F(SimulatedFault, set_ignored_reports_success_and_changes_nothing) {
  suffer(Kind::set_ignored);
  EXPECT_TRUE(at(15).set_limit(Watts(200)));
  EXPECT_EQ(card->limit(), Watts(390));
  EXPECT_TRUE(at(20).set_limit(Watts(200)));
  EXPECT_EQ(card->limit(), Watts(200));
}

TEST_F(SimulatedFault, limit_reverted_sets_the_preset_limit_once) {
  suffer(Kind::limit_reverted);
  ASSERT_TRUE(at(5).set_limit(Watts(200)));
  EXPECT_EQ(at(9.9).limit(), Watts(200));
  EXPECT_EQ(at(10).limit(), Watts(390));
  ASSERT_TRUE(card->set_limit(Watts(250)));
  EXPECT_EQ(at(15).limit(), Watts(250));
}

TEST_F(SimulatedFault, counter_reset_starts_the_energy_counter_again) {
  suffer(Kind::counter_reset);
  EXPECT_NEAR(at(9.95).energy()->value(), 9.9 * 300 * 0.97, 1e-6);
  EXPECT_EQ(at(10.05).energy(), Joules(0));
  EXPECT_NEAR(at(12.05).energy()->value(), 2 * 300 * 0.97, 1e-6);
}

TEST_F(SimulatedFault, thermal_throttle_slows_steps_and_is_told) {
  suffer(Kind::thermal_throttle, 0.25);
  EXPECT_EQ(at(9).slowdown(), 1);
  EXPECT_EQ(at(10).slowdown(), 1.25);
  EXPECT_EQ(at(19.9).slowdown(), 1.25);
  EXPECT_EQ(at(20).slowdown(), 1);
  EXPECT_NEAR(read(30, SignalId::throttled_time), 10, 1e-9);
}

TEST_F(SimulatedFault, heating_raises_the_temperature_that_the_card_ends_at) {
  suffer(Kind::heating, 40);
  const double before = read(10, SignalId::temperature);
  const double target = 25 + 0.125 * 300 + 40;
  EXPECT_NEAR(read(20, SignalId::temperature), target + (before - target) * std::exp(-0.5),
              1e-9);
  EXPECT_NEAR(read(500, SignalId::temperature), 25 + 0.125 * 300, 1e-6);
}

TEST_F(SimulatedFault, foreign_process_is_told) {
  suffer(Kind::foreign_process);
  EXPECT_EQ(read(9, SignalId::foreign_processes), 0);
  EXPECT_EQ(read(15, SignalId::foreign_processes), 1);
  EXPECT_EQ(read(20, SignalId::foreign_processes), 0);
}

TEST_F(SimulatedFault, lost_fails_every_call_that_can_fail) {
  suffer(Kind::lost);
  EXPECT_TRUE(at(9).read());
  const auto sample = at(15).read();
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.error().kind, ErrorKind::device);
  EXPECT_EQ(sample.error().message, "sim:card: the card does not answer any more");
  EXPECT_EQ(card->energy(), std::nullopt);
  EXPECT_EQ(card->set_limit(Watts(200)).error().message, sample.error().message);
  EXPECT_TRUE(at(20).read());
  EXPECT_EQ(card->limit(), Watts(390));
}

/// Runs a card into trouble and out of it again; `often` reads it all the time.
Sample state_after(Kind kind, bool often, std::optional<Joules>& energy) {
  VirtualClock clock;
  SimulatedCard card(kId, CardModel{}, clock, {Fault{kind, Seconds(10), Seconds(20), 10}});
  card.set_demand(Watts(300));
  clock.sleep_until(Seconds(5));
  EXPECT_TRUE(card.set_limit(Watts(200)));
  for (int tenth = 50; often && tenth < 300; ++tenth) {
    clock.sleep_until(Seconds(tenth / 10.0));
    card.energy();
  }
  clock.sleep_until(Seconds(30.05));
  energy = card.energy();
  return *card.read();
}

TEST_F(SimulatedFault, leaves_the_same_state_however_often_the_card_is_read) {
  for (const Kind kind :
       {Kind::set_refused, Kind::set_ignored, Kind::limit_reverted, Kind::counter_reset,
        Kind::thermal_throttle, Kind::heating, Kind::foreign_process, Kind::lost}) {
    SCOPED_TRACE(static_cast<int>(kind));
    std::optional<Joules> energy;
    std::optional<Joules> other_energy;
    const Sample one = state_after(kind, true, energy);
    const Sample other = state_after(kind, false, other_energy);
    EXPECT_NEAR(energy->value(), other_energy->value(), 1e-6);
    for (const Signal& signal : kSignals) {
      EXPECT_EQ(one[signal.id].has_value(), other[signal.id].has_value()) << signal.name;
      EXPECT_NEAR(one[signal.id].value_or(0), other[signal.id].value_or(0), 1e-9)
          << signal.name;
    }
  }
}

}  // namespace
}  // namespace halfwatt
