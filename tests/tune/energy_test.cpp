#include "tune/energy.h"

#include <gtest/gtest.h>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

Curve curve(const std::vector<Scripted>& windows) {
  return build_curve(scripted_series(windows), Reference::top);
}

TEST(LeastEnergy, uses_measured_joules_where_every_limit_has_them) {
  const auto least =
      least_energy(curve({{200, 20, 190}, {300, 11, 280}, {400, 10, 300}}), power_limit_knob());
  ASSERT_TRUE(least);
  EXPECT_EQ(least->basis, EnergyBasis::measured);
  EXPECT_EQ(least->limit, 400);  // 3.0 J against 3.08 and 3.8: the card draws 300 W at 400
  EXPECT_NEAR(least->joules_per_item, 3.0, 1e-9);
}

TEST(LeastEnergy, falls_back_on_limit_times_time_and_says_so) {
  const auto least = least_energy(curve({{200, 20}, {300, 11}, {400, 10}}), power_limit_knob());
  ASSERT_TRUE(least);
  EXPECT_EQ(least->basis, EnergyBasis::limit_times_time);
  EXPECT_EQ(least->limit, 300);
}

TEST(LeastEnergy, falls_back_where_a_single_limit_lacks_joules) {
  EXPECT_EQ(energy_basis(curve({{200, 20, 190}, {300, 11}}), power_limit_knob()),
            EnergyBasis::limit_times_time);
}

TEST(LeastEnergy, is_unknown_for_a_knob_that_is_not_watts_and_has_no_joules) {
  EXPECT_FALSE(least_energy(curve({{200, 20}, {300, 11}}), Knob{"sm_clock", "MHz"}));
}

TEST(LeastEnergy, tells_the_flat_range_around_it) {
  const auto least = least_energy(
      curve(
          {{200, 20, 190}, {250, 14, 250}, {260, 13.5, 259}, {270, 13.0, 269}, {400, 10, 400}}),
      power_limit_knob());
  ASSERT_TRUE(least);
  EXPECT_EQ(least->flat, std::make_pair(250.0, 270.0));
}

TEST(LeastEnergy, tells_the_least_energy_times_time) {
  const auto least =
      least_energy(curve({{200, 20, 190}, {300, 11, 300}, {400, 10, 380}}), power_limit_knob());
  EXPECT_EQ(least->limit, 300);
  EXPECT_EQ(least->energy_delay_limit, 300);
}

}  // namespace
}  // namespace halfwatt
