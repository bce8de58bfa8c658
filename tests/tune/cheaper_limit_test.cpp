#include "tune/cheaper_limit.h"

#include <gtest/gtest.h>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

const LimitSpace kSpace{power_limit_knob(), 150, 480, 10};

// The next limit when these windows are known; watts are what the card draws.
std::optional<double> next(const std::vector<Scripted>& windows, Thrift thrift) {
  Curve curve = build_curve(scripted_series(windows), Reference::top);
  curve.noise = kAssumedNoise;
  std::set<double> tried;
  for (const Scripted& window : windows) {
    tried.insert(window.limit);
  }
  return cheaper_limit(curve, kSpace, tried, thrift);
}

// A window whose energy is `joules` a step.
Scripted at(double limit, double joules) { return {limit, 1000 * joules / limit, limit}; }

TEST(CheaperLimit, goes_further_down_while_the_lowest_limit_is_the_cheapest) {
  const auto lower = next({at(300, 1.0), at(400, 1.2), at(480, 1.4)}, Thrift::large);
  ASSERT_TRUE(lower);
  EXPECT_LT(*lower, 290);
  EXPECT_GE(*lower, 220);
}

TEST(CheaperLimit, takes_larger_steps_the_steeper_energy_falls) {
  const auto steep = next({at(300, 1.0), at(400, 1.3), at(480, 1.5)}, Thrift::large);
  const auto flat = next({at(300, 1.0), at(400, 1.02), at(480, 1.2)}, Thrift::large);
  EXPECT_LT(*steep, *flat);
}

TEST(CheaperLimit, goes_where_convexity_leaves_most_room_between_known_limits) {
  const auto inside =
      next({at(200, 1.1), at(200, 1.1), at(300, 1.02), at(400, 1.3)}, Thrift::large);
  ASSERT_TRUE(inside);
  EXPECT_GT(*inside, 200);
  EXPECT_LT(*inside, 300);
}

TEST(CheaperLimit, does_not_look_where_the_lines_through_its_neighbours_leave_no_room) {
  // From 320 to 340 energy rises by 0.02: drawn on, it is above 1.0 at 310.
  EXPECT_FALSE(next({at(290, 1.3), at(300, 1.0), at(320, 1.02), at(340, 1.04)}, Thrift::small));
}

TEST(CheaperLimit, looks_twice_at_a_lowest_limit_that_one_odd_window_may_have_made_dear) {
  EXPECT_EQ(next({at(240, 1.02), at(250, 1.0), at(260, 1.01)}, Thrift::small), 240);
  EXPECT_FALSE(next({at(240, 1.3), at(250, 1.0), at(260, 1.01)}, Thrift::small));
}

TEST(CheaperLimit, repeats_nothing_where_repeats_agree_exactly) {
  const std::vector<Scripted> windows = {at(240, 1.02), at(250, 1.0), at(260, 1.0)};
  Curve curve = build_curve(scripted_series(windows), Reference::top);
  curve.noise = 0;
  EXPECT_FALSE(cheaper_limit(curve, kSpace, {240, 250, 260}, Thrift::small));
}

TEST(CheaperLimit, looks_into_a_wide_gap_behind_a_cliff) {
  const auto inside =
      next({at(300, 1.45), at(400, 1.016), at(410, 1.023), at(440, 1.05), at(480, 1.09)},
           Thrift::small);
  ASSERT_TRUE(inside);
  EXPECT_GT(*inside, 340);
  EXPECT_LT(*inside, 400);
}

TEST(CheaperLimit, is_content_when_both_neighbours_of_the_cheapest_are_known) {
  EXPECT_FALSE(
      next({at(230, 1.01), at(230, 1.01), at(240, 1.0), at(250, 1.01)}, Thrift::small));
}

TEST(CheaperLimit, looks_at_neighbours_only_at_the_end) {
  const std::vector<Scripted> windows = {at(220, 1.004), at(220, 1.004), at(240, 1.0),
                                         at(260, 1.004)};
  EXPECT_FALSE(next(windows, Thrift::large));
  EXPECT_TRUE(next(windows, Thrift::small));
}

TEST(CheaperLimit, stops_at_the_floor_of_the_card) {
  EXPECT_FALSE(next({at(150, 1.0), at(160, 1.01), at(480, 1.5)}, Thrift::small));
}

TEST(CheaperLimit, asks_for_nothing_where_the_highest_limit_is_the_cheapest) {
  EXPECT_FALSE(next({at(300, 1.2), at(400, 1.1), at(480, 1.0)}, Thrift::small));
}

}  // namespace
}  // namespace halfwatt
