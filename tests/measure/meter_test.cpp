#include "measure/meter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/record_json.h"
#include "measure/simulation.h"

namespace halfwatt {
namespace {

bool never() { return false; }

Setting at_limit(double watts) {
  Setting setting;
  setting.set("power_limit", watts);
  return setting;
}

Meter meter_of(Simulation& simulation, std::function<bool()> interrupted = never) {
  return {simulation.clock, simulation.card, simulation.workload, MeterRules{},
          std::move(interrupted)};
}

/// The simulated card without its energy counter.
class WithoutCounter final : public Device {
 public:
  explicit WithoutCounter(SimulatedCard& card) : card_(&card), info_(card.info()) {
    info_.energy_tick = std::nullopt;
  }
  const DeviceInfo& info() const override { return info_; }
  Result<Sample> read() override { return card_->read(); }
  std::optional<Joules> energy() override { return std::nullopt; }
  void share() { info_.shared = true; }

 private:
  SimulatedCard* card_;
  DeviceInfo info_;
};

TEST(Meter, measures_a_workload_under_a_limit) {
  Simulation simulation;
  ASSERT_TRUE(simulation.workload.start());
  Meter meter = meter_of(simulation);
  ASSERT_TRUE(simulation.card.set_limit(Watts(250)));
  EXPECT_TRUE(meter.warm_up().value());
  const Measurement measured = meter.measure(at_limit(250), Watts(250)).value();
  EXPECT_EQ(measured.setting, at_limit(250));
  EXPECT_EQ(measured.notes, Notes{});
  EXPECT_EQ(measured.numerical_state, NumericalState::live);
  EXPECT_EQ(measured.work.unit, "image");
  EXPECT_EQ(measured.work.items_per_step, 160);
  EXPECT_NEAR(measured.work.step_time.value(), 0.25, 1e-9);
  EXPECT_EQ(measured.energy.method, EnergyMethod::counter);
  EXPECT_NEAR(*measured.energy.relative_error, 0.03, 1e-12);
  const double joules_per_item = 250 * 0.97 * 0.25 / 160;
  EXPECT_NEAR(measured.joules_per_item()->value(), joules_per_item, 0.01 * joules_per_item);
}

TEST(Meter, marks_the_windows_of_a_card_that_others_may_use_and_lets_them_count) {
  Simulation::Parts parts;
  parts.faults = {{Fault::Kind::foreign_process, Seconds(0), Seconds(1e6)}};
  Simulation simulation(parts);
  ASSERT_TRUE(simulation.workload.start());
  ASSERT_TRUE(simulation.card.set_limit(Watts(250)));
  WithoutCounter card(simulation.card);
  Meter meter(simulation.clock, card, simulation.workload, MeterRules{}, never);
  EXPECT_TRUE(meter.warm_up().value());
  EXPECT_EQ(meter.measure(at_limit(250), Watts(250)).value().notes,
            Notes{WindowNote::foreign_process});
  card.share();
  const Measurement shared = meter.measure(at_limit(250), Watts(250)).value();
  EXPECT_EQ(shared.notes, Notes{WindowNote::shared_card});
  EXPECT_TRUE(shared.counts());
}

TEST(Meter, counts_time_from_its_own_beginning) {
  Simulation::Parts parts;
  parts.begun = Seconds(1e6);
  Simulation simulation(parts);
  ASSERT_TRUE(simulation.workload.start());
  Meter meter = meter_of(simulation);
  const Measurement first = meter.measure(at_limit(390), Watts(390)).value();
  EXPECT_GT(first.started, Seconds(0));
  EXPECT_LT(first.started, Seconds(62));
  const Measurement second = meter.measure(at_limit(390), Watts(390)).value();
  EXPECT_GT(second.started, first.started + first.work.duration);
}

TEST(Meter, takes_some_minutes_of_virtual_time_and_next_to_none_of_real_time) {
  const SteadyClock wall;
  const Seconds begun = wall.now();
  Simulation simulation;
  ASSERT_TRUE(simulation.workload.start());
  Meter meter = meter_of(simulation);
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(meter.measure(at_limit(390), Watts(390)));
  }
  EXPECT_GT(simulation.clock.now(), Seconds(200));
  EXPECT_LT(wall.now() - begun, Seconds(10));
}

TEST(Meter, warms_up_until_the_heat_sink_is_warm) {
  Simulation simulation;
  ASSERT_TRUE(simulation.workload.start());
  Meter meter = meter_of(simulation);
  EXPECT_TRUE(meter.warm_up().value());
  // 45 K with a time constant of 20 s: below 1/60 K/s after 20 s * ln(45 / 20 * 60) = 98 s.
  EXPECT_GT(simulation.clock.now(), Seconds(90));
  EXPECT_LT(simulation.clock.now(), Seconds(120));
}

TEST(Meter, notes_that_the_card_never_settled) {
  Simulation::Parts parts;
  parts.card.thermal_time = Seconds(1000);
  parts.card.kelvin_per_watt = 0.7;  // rises by 0.2 K/s for a long time
  Simulation simulation(parts);
  ASSERT_TRUE(simulation.workload.start());
  Meter meter = meter_of(simulation);
  const Measurement measured = meter.measure(at_limit(390), std::nullopt).value();
  EXPECT_EQ(measured.notes, (Notes{WindowNote::cap_not_binding, WindowNote::never_settled}));
  EXPECT_TRUE(measured.counts());
  EXPECT_FALSE(meter.warm_up().value());
}

TEST(Meter, stops_when_it_is_interrupted) {
  Simulation simulation;
  ASSERT_TRUE(simulation.workload.start());
  for (const int after : {0, 1, 12, 40}) {  // at once, while it settles, in the window
    int asked = 0;
    Meter meter = meter_of(simulation, [&asked, after] { return asked++ >= after; });
    const auto result = meter.measure(at_limit(390), Watts(390));
    ASSERT_FALSE(result) << after;
    EXPECT_EQ(result.error().kind, ErrorKind::interrupted);
  }
}

TEST(Meter, stops_when_the_device_is_lost) {
  for (const double at : {0.0, 3.0, 7.0}) {  // at once, while it settles, in the window
    Simulation::Parts parts;
    parts.faults = {Fault{Fault::Kind::lost, Seconds(at), Seconds(1e9), 0}};
    parts.card.thermal_time = Seconds(0.1);
    VirtualClock clock;
    SimulatedCard card({DeviceId::Kind::simulated, "card"}, parts.card, clock, parts.faults);
    RecordedWorkload workload({}, parts.curve, parts.demand, parts.state, card, {}, 1);
    ASSERT_TRUE(workload.start());
    Meter meter(clock, card, workload, {}, never);
    const auto result = meter.measure(at_limit(390), std::nullopt);
    ASSERT_FALSE(result) << at;
    EXPECT_EQ(result.error().kind, ErrorKind::device);
    EXPECT_EQ(result.error().message, "sim:card: the card does not answer any more");
    EXPECT_GE(clock.now(), Seconds(at));
  }
}

TEST(Meter, integrates_power_on_a_device_without_a_counter) {
  Simulation simulation;
  simulation.warm_up(Watts(250));
  WithoutCounter device(simulation.card);
  Meter meter(simulation.clock, device, simulation.workload, {}, never);
  const Measurement measured = meter.measure(at_limit(250), Watts(250)).value();
  EXPECT_EQ(measured.energy.method, EnergyMethod::power_integral);
  EXPECT_NEAR(measured.energy.value->value(), 250 * 0.97 * measured.work.duration.value(),
              1e-6);
  EXPECT_NEAR(measured.work.steps, measured.work.duration.value() / 0.25, 0.1);
  EXPECT_GE(measured.work.steps, 20);
}

TEST(Meter, voids_a_window_in_which_the_machine_was_suspended) {
  Simulation simulation;
  simulation.warm_up(Watts(250));
  int asked = 0;
  Meter meter = meter_of(simulation, [&] {
    if (++asked == 70) {
      simulation.clock.suspend(Seconds(3600));
    }
    return false;
  });
  const Measurement measured = meter.measure(at_limit(250), Watts(250)).value();
  ASSERT_GT(asked, 75);
  EXPECT_EQ(measured.notes, Notes{WindowNote::suspended});
}

TEST(Meter, checks_no_energy_of_a_device_that_is_sure_of_it) {
  Simulation simulation;
  Meter meter = meter_of(simulation);
  ASSERT_TRUE(meter.check_energy());
  EXPECT_EQ(simulation.clock.now(), Seconds(0));
}

TEST(Meter, returns_a_window_that_can_be_recorded_where_no_step_was_done) {
  Simulation::Parts parts;
  parts.begun = Seconds(5000);
  Simulation simulation(parts);  // never started: no step is ever done
  Meter meter = meter_of(simulation);
  const Measurement measured = meter.measure(at_limit(390), Watts(390)).value();
  EXPECT_EQ(measured.notes, (Notes{WindowNote::no_progress, WindowNote::never_settled}));
  EXPECT_EQ(measured.energy.relative_error, std::nullopt);
  const auto again = parse_measurement_line(measurement_line(measured), "line");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->counts());
}

TEST(Meter, passes_on_that_the_network_is_dead) {
  Simulation::Parts parts;
  parts.state = NumericalState::dead;
  Simulation simulation(parts);
  ASSERT_TRUE(simulation.workload.start());
  const Measurement measured = meter_of(simulation).measure(at_limit(390), Watts(390)).value();
  EXPECT_EQ(measured.numerical_state, NumericalState::dead);
  EXPECT_FALSE(measured.counts());
}

}  // namespace
}  // namespace halfwatt
