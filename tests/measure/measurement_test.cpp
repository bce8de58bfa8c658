#include "measure/measurement.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(Measurement, counts_unless_a_note_voids_it) {
  Measurement measured;
  EXPECT_TRUE(measured.counts());
  measured.notes = {WindowNote::clamped, WindowNote::never_settled,
                    WindowNote::cap_not_binding};
  EXPECT_TRUE(measured.counts());
  measured.notes.push_back(WindowNote::foreign_process);
  EXPECT_FALSE(measured.counts());
}

TEST(Measurement, does_not_count_where_the_network_is_dead_or_stalled) {
  Measurement measured;
  measured.numerical_state = NumericalState::live;
  EXPECT_TRUE(measured.counts());
  measured.numerical_state = NumericalState::dead;
  EXPECT_FALSE(measured.counts());
  measured.numerical_state = NumericalState::stalled;
  EXPECT_FALSE(measured.counts());
}

TEST(Measurement, is_settled_by_a_dead_network_which_stays_dead) {
  Measurement measured;
  measured.notes = {WindowNote::unsteady};
  EXPECT_FALSE(measured.settled());
  measured.numerical_state = NumericalState::dead;
  EXPECT_TRUE(measured.settled());
}

TEST(Measurement, divides_its_energy_by_the_items_of_fractional_steps) {
  Measurement measured;
  measured.energy = {Joules(1000), EnergyMethod::counter, {}};
  measured.work.steps = 12.5;
  measured.work.items_per_step = 160;
  EXPECT_DOUBLE_EQ(measured.joules_per_item()->value(), 0.5);
}

TEST(Measurement, knows_no_joules_of_an_item_without_energy_or_steps) {
  Measurement measured;
  measured.work.steps = 10;
  EXPECT_EQ(measured.joules_per_item(), std::nullopt);
  measured.energy = {Joules(1000), EnergyMethod::counter, {}};
  measured.work.steps = 0;
  EXPECT_EQ(measured.joules_per_item(), std::nullopt);
}

TEST(Work, turns_the_median_step_into_items_per_second) {
  Work work;
  work.step_time = Seconds(0.2);
  work.items_per_step = 160;
  EXPECT_DOUBLE_EQ(work.items_per_second(), 800);
}

}  // namespace
}  // namespace halfwatt
