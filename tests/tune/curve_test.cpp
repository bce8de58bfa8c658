#include "tune/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

TEST(Curve, takes_repeats_of_a_limit_together_by_their_median) {
  const Curve curve = build_curve(
      scripted_series({{300, 10.0}, {300, 10.2}, {300, 19.0}, {400, 8.0}}), Reference::top);
  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_NEAR(curve.points[0].step_time.value(), 0.0102, 1e-9);
  EXPECT_EQ(curve.points[0].windows, 3);
  EXPECT_EQ(curve.windows, 4);
}

TEST(Curve, leaves_out_windows_that_must_not_count_and_says_how_many) {
  Series series = scripted_series({{300, 10}, {400, 8}, {400, 80}});
  series.measurements[2].notes = {WindowNote::thermal_throttle};
  const Curve curve = build_curve(series, Reference::top);
  EXPECT_NEAR(curve.points[1].step_time.value(), 0.008, 1e-9);
  EXPECT_EQ(curve.rejected, 1);
}

TEST(Curve, keeps_the_shape_of_a_series_that_is_dead_as_a_whole) {
  Series series = scripted_series({{300, 10}, {400, 8}});
  for (Measurement& each : series.measurements) {
    each.numerical_state = NumericalState::dead;
  }
  EXPECT_EQ(build_curve(series, Reference::top).points.size(), 2U);
}

TEST(Curve, leaves_out_a_dead_window_of_a_live_series) {
  Series series = scripted_series({{300, 10}, {400, 8}, {500, 5}});
  series.measurements[2].numerical_state = NumericalState::dead;
  EXPECT_EQ(build_curve(series, Reference::top).points.size(), 2U);
}

TEST(Curve, is_empty_where_no_window_counts) {
  EXPECT_TRUE(build_curve(scripted_series({}), Reference::top).empty());
}

TEST(Curve, takes_the_highest_the_preset_or_the_fastest_limit_as_reference) {
  Series series = scripted_series({{300, 10}, {400, 7.9}, {480, 8}});
  series.limits = LimitRange{Watts(100), Watts(480), Watts(310)};
  EXPECT_EQ(build_curve(series, Reference::top).reference, 2U);
  EXPECT_EQ(build_curve(series, Reference::preset).reference, 0U);
  EXPECT_EQ(build_curve(series, Reference::peak).reference, 1U);
}

TEST(Curve, knows_no_noise_where_nothing_was_repeated) {
  EXPECT_FALSE(build_curve(scripted_series({{300, 10}, {400, 8}}), Reference::top).noise);
}

TEST(Curve, tells_the_noise_of_a_window_from_repeats) {
  std::vector<Scripted> windows;
  windows.reserve(40);
  for (int i = 0; i < 40; ++i) {
    windows.push_back({400, i % 2 == 0 ? 10.05 : 9.95, 0, 0});  // all at once: no drift
  }
  const Curve curve = build_curve(scripted_series(windows), Reference::top);
  EXPECT_NEAR(*curve.noise, 0.005, 0.0005);
}

TEST(Curve, knows_that_something_repeats_exactly) {
  const Curve curve =
      build_curve(scripted_series({{300, 10}, {300, 10}, {300, 10}, {400, 8}}), Reference::top);
  EXPECT_TRUE(curve.repeats_exactly());
  EXPECT_FALSE(build_curve(scripted_series({{300, 10}, {300, 10.01}, {400, 8}}), Reference::top)
                   .repeats_exactly());
}

TEST(Curve, tells_the_demand_of_a_load_from_its_draw) {
  // The meter shows 0.97 of the true power; the load wants 350 W.
  const Curve curve = build_curve(
      scripted_series({{200, 14, 194}, {300, 10, 291}, {400, 9, 339.5}, {480, 9, 339.5}}),
      Reference::top);
  ASSERT_TRUE(curve.demand);
  EXPECT_NEAR(*curve.demand, 350, 1e-6);
  EXPECT_EQ(curve.effective(300), 300);
  EXPECT_LT(curve.effective(480), 370);
  EXPECT_GT(curve.effective(480), curve.effective(400));
}

TEST(Curve, tells_the_demand_of_each_of_several_cards) {
  Series series = scripted_series({{200, 14, 400}, {300, 10, 600}, {400, 9, 700}});
  series.cards = 2;
  const Curve curve = build_curve(series, Reference::top);
  EXPECT_NEAR(curve.demand.value_or(0), 350, 1e-6);
}

TEST(Curve, knows_no_demand_where_the_cap_binds_everywhere_or_no_draw_was_measured) {
  const Curve bound =
      build_curve(scripted_series({{200, 14, 194}, {480, 9, 465.6}}), Reference::top);
  EXPECT_FALSE(bound.demand);
  EXPECT_EQ(bound.effective(480), 480);
  EXPECT_FALSE(build_curve(scripted_series({{200, 14}, {480, 9}}), Reference::top).demand);
}

TEST(Curve, does_not_take_one_odd_window_of_three_for_noise) {
  const Curve curve = build_curve(scripted_series({{300, 10, 0, 50},
                                                   {400, 8, 0, 0},
                                                   {400, 8.001, 0, 100},
                                                   {400, 8.24, 0, 200},
                                                   {400, 8, 0, 300}}),
                                  Reference::top);
  EXPECT_LT(*curve.noise, 0.002);
}

TEST(Curve, takes_out_a_drift_that_repeats_of_the_reference_show) {
  // Everything gets 1 % slower every 100 s.
  const auto slowed = [](double ms, double at) { return ms * std::exp(0.0001 * at); };
  std::vector<Scripted> windows;
  for (const double at : {0.0, 200.0, 400.0}) {
    windows.push_back({400, slowed(8, at), 0, at});
  }
  windows.push_back({300, slowed(10, 390), 0, 390});
  windows.push_back({200, slowed(14, 10), 0, 10});
  const Curve curve = build_curve(scripted_series(windows), Reference::top);
  EXPECT_NEAR(curve.share(1), 8.0 / 10.0, 1e-6);
  EXPECT_NEAR(curve.share(0), 8.0 / 14.0, 1e-6);
  EXPECT_NEAR(curve.drift, 0.04, 1e-6);
}

TEST(Curve, tells_energy_an_item_and_mean_draw) {
  Series series = scripted_series({{300, 10, 290}});
  series.measurements[0].work.items_per_step = 4;
  const Curve curve = build_curve(series, Reference::top);
  EXPECT_NEAR(*curve.points[0].joules_per_item, 290 * 0.010 / 4, 1e-9);
  EXPECT_NEAR(curve.points[0].draw->value(), 290, 1e-9);
  EXPECT_NEAR(curve.points[0].items_per_second, 400, 1e-9);
}

}  // namespace
}  // namespace halfwatt
