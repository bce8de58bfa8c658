// What voids a window, each on its own: on the simulated card where it can do it, else by hand.
#include <gtest/gtest.h>

#include "measure/hand_made.h"
#include "measure/simulation.h"

namespace halfwatt {
namespace {

/// A warm card under 250 W, to which `kind` happens `from` 1 s into the window (at 200 s) on.
Measurement window_with(Fault::Kind kind, double amount = 0, double from = 201) {
  Simulation::Parts parts;
  parts.faults = {Fault{kind, Seconds(from), Seconds(1000), amount}};
  Simulation simulation(parts);
  simulation.warm_up(Watts(250));
  return run_window(simulation, Watts(250));
}

TEST(WindowRejection, leaves_a_quiet_window_alone) {
  Simulation simulation;
  simulation.warm_up(Watts(250));
  const Measurement measured = run_window(simulation, Watts(250));
  EXPECT_EQ(measured.notes, Notes{});
  EXPECT_TRUE(measured.counts());
}

TEST(WindowRejection, notes_a_limit_that_somebody_else_changed) {
  const Measurement measured = window_with(Fault::Kind::limit_reverted);
  ASSERT_FALSE(measured.notes.empty());
  EXPECT_EQ(measured.notes.front(), WindowNote::limit_reverted);
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, notes_that_the_command_was_started_again_meanwhile) {
  HandMade world;
  world.spoil = [](Observation& seen) { seen.work.starts = seen.now > Seconds(2) ? 2 : 1; };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::job_restarted});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, notes_that_the_machine_was_suspended_meanwhile) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    seen.asleep = Seconds(seen.now > Seconds(2) ? 60 : 5);
  };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::suspended});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, notes_that_whoever_measures_was_stopped_meanwhile) {
  HandMade world;
  world.spoil = [](Observation& seen) { seen.work.stops = seen.now > Seconds(2) ? 2 : 1; };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::suspended});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, bears_that_the_machine_was_suspended_before) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    seen.asleep = Seconds(seen.now > Seconds(0.05) ? 60.001 : 5);
  };
  EXPECT_EQ(run_window(world).notes, Notes{});
}

TEST(WindowRejection, notes_that_something_else_became_what_is_counted) {
  HandMade world;
  world.spoil = [](Observation& seen) { seen.work.changes = seen.now > Seconds(2) ? 4 : 3; };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::progress_changed});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, ends_at_once_when_no_more_steps_will_come) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    if (seen.now > Seconds(2)) {
      seen.work.stopped = WindowNote::does_not_fit;
    }
  };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::does_not_fit});
  EXPECT_FALSE(measured.counts());
  EXPECT_TRUE(measured.settled()) << "more attempts would not fit either";
}

TEST(WindowRejection, notes_a_limit_that_was_changed_and_changed_back) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    const bool meanwhile = seen.now > Seconds(2) && seen.now < Seconds(3);
    (*seen.sample)[SignalId::requested_limit] = meanwhile ? 350 : 300;
    (*seen.sample)[SignalId::enforced_limit] = meanwhile ? 350 : 300;
  };
  EXPECT_EQ(run_window(world).notes, Notes{WindowNote::limit_reverted});
}

TEST(WindowRejection, notes_a_limit_that_the_card_never_took) {
  Simulation::Parts parts;
  parts.faults = {Fault{Fault::Kind::set_ignored, Seconds(0), Seconds(1000), 0}};
  Simulation simulation(parts);
  simulation.warm_up(Watts(250));  // stays at 390 W
  const Measurement measured = run_window(simulation, Watts(250));
  ASSERT_FALSE(measured.notes.empty());
  EXPECT_EQ(measured.notes.front(), WindowNote::not_enforced);
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, notes_a_limit_that_the_card_accepts_and_does_not_enforce) {
  HandMade world;
  world.spoil = [](Observation& seen) { (*seen.sample)[SignalId::enforced_limit] = 350; };
  EXPECT_EQ(run_window(world).notes, Notes{WindowNote::not_enforced});
}

TEST(WindowRejection, bears_a_limit_that_the_card_rounds) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::requested_limit] = 300.4;
    (*seen.sample)[SignalId::enforced_limit] = 299.6;
  };
  EXPECT_EQ(run_window(world).notes, Notes{});
}

TEST(WindowRejection, holds_no_limit_against_a_window_that_set_none) {
  Simulation simulation;
  simulation.warm_up(Watts(250));
  EXPECT_EQ(run_window(simulation, std::nullopt).notes, Notes{});
}

TEST(WindowRejection, notes_a_card_that_throttles) {
  const Measurement measured = window_with(Fault::Kind::thermal_throttle, 0.02);
  EXPECT_EQ(measured.notes, Notes{WindowNote::thermal_throttle});
  EXPECT_GT(*measured.conditions.throttled_share, 0.5);
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, bears_throttling_for_a_hundredth_of_the_window) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::throttled_time] = seen.now.value() * 0.009;
  };
  EXPECT_EQ(run_window(world).notes, Notes{});
  world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::throttled_time] = seen.now.value() * 0.011;
  };
  EXPECT_EQ(run_window(world).notes, Notes{WindowNote::thermal_throttle});
}

TEST(WindowRejection, notes_a_temperature_that_moves_by_over_three_degrees) {
  const Measurement measured = window_with(Fault::Kind::heating, 30);
  EXPECT_EQ(measured.notes, Notes{WindowNote::temperature_drift});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, notes_a_card_that_cools_down) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::temperature] = 70 - seen.now.value();
  };
  EXPECT_EQ(run_window(world).notes, Notes{WindowNote::temperature_drift});
}

TEST(WindowRejection, notes_a_foreign_process) {
  const Measurement measured = window_with(Fault::Kind::foreign_process);
  EXPECT_EQ(measured.notes, Notes{WindowNote::foreign_process});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, notes_a_foreign_process_that_came_and_went) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::foreign_processes] =
        seen.now > Seconds(2) && seen.now < Seconds(3) ? 2 : 0;
  };
  EXPECT_EQ(run_window(world).notes, Notes{WindowNote::foreign_process});
}

TEST(WindowRejection, notes_a_counter_that_went_back_and_knows_no_joules) {
  const Measurement measured = window_with(Fault::Kind::counter_reset);
  EXPECT_EQ(measured.notes, Notes{WindowNote::counter_reset});
  EXPECT_EQ(measured.energy.value, std::nullopt);
  EXPECT_EQ(measured.energy.method, EnergyMethod::none);
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, takes_no_reset_of_the_counter_for_a_tick) {
  HandMade world;  // reset in the middle of a tick, before the first edge
  world.spoil = [](Observation& seen) {
    if (seen.now >= Seconds(100.05)) {
      seen.energy->value = *seen.energy->value - Joules(30'000);
    }
  };
  const Measurement measured = run_window(world, {}, 100.01);
  EXPECT_GE(measured.started, Seconds(100.0999));
  EXPECT_EQ(measured.notes, Notes{});
}

TEST(WindowRejection, gives_up_on_a_counter_that_stops) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    seen.energy->value = std::min(*seen.energy->value, Joules(900));
  };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::energy_disagrees});
  EXPECT_EQ(measured.energy.value, std::nullopt);
  EXPECT_LT(measured.work.duration, Seconds(310));
}

TEST(WindowRejection, gives_up_on_a_counter_that_never_moves) {
  HandMade world;
  world.spoil = [](Observation& seen) { seen.energy->value = Joules(900); };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::energy_disagrees});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, notes_a_counter_that_disagrees_with_the_power) {
  HandMade world;
  const auto with_gap = [&world](double factor) {
    world.spoil = [factor](Observation& seen) {
      (*seen.sample)[SignalId::power] = *(*seen.sample)[SignalId::power] * factor;
    };
    return run_window(world).notes;
  };
  EXPECT_EQ(with_gap(1.04), Notes{});
  EXPECT_EQ(with_gap(0.96), Notes{});
  EXPECT_EQ(with_gap(1.06), Notes{WindowNote::energy_disagrees});
  EXPECT_EQ(with_gap(0.94), Notes{WindowNote::energy_disagrees});
}

TEST(WindowRejection, notes_steps_that_vary_by_over_a_tenth) {
  Simulation::Parts parts;
  parts.disturbance.step_jitter = 0.2;
  Simulation simulation(parts);
  simulation.warm_up(Watts(250));
  const Measurement measured = run_window(simulation, Watts(250));
  EXPECT_EQ(measured.notes, Notes{WindowNote::unsteady});
  EXPECT_FALSE(measured.counts());
}

TEST(WindowRejection, bears_steps_that_vary_by_a_few_percent) {
  Simulation::Parts parts;
  parts.disturbance.step_jitter = 0.03;
  Simulation simulation(parts);
  simulation.warm_up(Watts(250));
  EXPECT_EQ(run_window(simulation, Watts(250)).notes, Notes{});
}

TEST(WindowRejection, notes_a_cap_that_does_not_bind_and_counts_all_the_same) {
  Simulation simulation;
  simulation.warm_up(Watts(400));  // over the demand of 360 W
  const Measurement measured = run_window(simulation, Watts(400));
  EXPECT_EQ(measured.notes, Notes{WindowNote::cap_not_binding});
  EXPECT_TRUE(measured.counts());
}

TEST(WindowRejection, gives_up_on_a_workload_that_does_no_step) {
  Simulation simulation;
  simulation.warm_up(Watts(250));
  simulation.workload.stop();
  const Seconds begun = simulation.clock.now();
  const Measurement measured = run_window(simulation, Watts(250));
  EXPECT_EQ(measured.notes, Notes{WindowNote::no_progress});
  EXPECT_FALSE(measured.counts());
  EXPECT_LT(simulation.clock.now() - begun, Seconds(302));
}

TEST(WindowRejection, gives_up_on_a_workload_that_stops_in_the_window) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    seen.work.count = std::min(seen.work.count, 12.0);
    seen.work.at = std::min(seen.work.at, Seconds(3));
  };
  const Measurement measured = run_window(world);
  EXPECT_EQ(measured.notes, Notes{WindowNote::no_progress});
  EXPECT_LT(measured.work.duration, Seconds(305));
}

TEST(WindowRejection, knows_when_a_window_without_an_edge_began) {
  HandMade world;
  world.has_counter = false;
  world.step_time = 1e9;
  const Measurement measured = run_window(world, {}, 1000);
  EXPECT_EQ(measured.notes, Notes{WindowNote::no_progress});
  EXPECT_EQ(measured.started, Seconds(1000));
  EXPECT_NEAR(measured.work.duration.value(), 300, 1);
}

TEST(WindowRejection, names_every_reason_that_it_sees) {
  HandMade world;
  world.spoil = [](Observation& seen) {
    (*seen.sample)[SignalId::foreign_processes] = 1;
    (*seen.sample)[SignalId::enforced_limit] = 350;
    (*seen.sample)[SignalId::throttled_time] = seen.now.value();
  };
  EXPECT_EQ(run_window(world).notes,
            (Notes{WindowNote::not_enforced, WindowNote::thermal_throttle,
                   WindowNote::foreign_process}));
}

}  // namespace
}  // namespace halfwatt
