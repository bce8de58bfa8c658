#include "tune/shape.h"

#include <gtest/gtest.h>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

Curve curve(const std::vector<Scripted>& windows) {
  return build_curve(scripted_series(windows), Reference::top);
}

TEST(Shape, finds_a_plateau_where_the_card_draws_less_than_its_limit) {
  const auto plateau = find_plateau(curve({{300, 12, 299},
                                           {400, 10, 392},
                                           {500, 9.99, 393},
                                           {550, 10, 393},
                                           {600, 10.02, 393}}),
                                    true);
  ASSERT_TRUE(plateau);
  EXPECT_EQ(plateau->from, 500);
  EXPECT_TRUE(plateau->seen_in_draw);
}

TEST(Shape, does_not_take_a_meter_that_shows_too_little_for_a_plateau) {
  EXPECT_FALSE(find_plateau(
      curve({{300, 12, 279}, {400, 10, 372}, {500, 9, 465}, {600, 8, 558}}), true));
}

TEST(Shape, finds_a_plateau_by_speed_where_no_draw_is_known) {
  const auto plateau =
      find_plateau(curve({{200, 20}, {300, 12}, {400, 10}, {440, 10.01}, {480, 9.99}}), true);
  ASSERT_TRUE(plateau);
  EXPECT_EQ(plateau->from, 400);
  EXPECT_FALSE(plateau->seen_in_draw);
}

TEST(Shape, finds_no_plateau_in_a_curve_that_still_rises) {
  EXPECT_FALSE(find_plateau(curve({{300, 12}, {400, 11}, {440, 10.5}, {480, 10}}), true));
  EXPECT_FALSE(find_plateau(curve({{300, 12}, {480, 12}}), true));
}

TEST(Shape, names_an_outlier_and_not_its_neighbours) {
  std::vector<Scripted> windows;
  for (double x = 300; x <= 480; x += 10) {
    windows.push_back({x, 10 + (480 / x) * (480 / x) * (x == 390 ? 1.1 : 1.0)});
  }
  const std::vector<Outlier> outliers = find_outliers(curve(windows));
  ASSERT_EQ(outliers.size(), 1U);
  EXPECT_EQ(outliers[0].x, 390);
  EXPECT_GT(outliers[0].percent, 0.5);
}

TEST(Shape, finds_no_outlier_in_a_smooth_curve_or_one_too_short_to_tell) {
  std::vector<Scripted> windows;
  for (double x = 200; x <= 480; x += 10) {
    windows.push_back({x, 5 + (480 / x) * (480 / x)});
  }
  EXPECT_TRUE(find_outliers(curve(windows)).empty());
  EXPECT_TRUE(find_outliers(curve({{300, 10}, {390, 30}, {480, 10}})).empty());
}

TEST(Shape, lists_falls_of_more_than_half_a_percent_worst_first) {
  const auto falls =
      find_descents(curve({{200, 20}, {250, 20.2}, {300, 12}, {350, 12.6}, {400, 12.59}}));
  ASSERT_EQ(falls.size(), 2U);
  EXPECT_EQ(falls[0].from, 300);
  EXPECT_EQ(falls[0].to, 350);
  EXPECT_NEAR(falls[0].percent, 4.76, 0.01);
  EXPECT_EQ(falls[1].to, 250);
}

TEST(Shape, finds_the_knee_where_the_curve_bends_most) {
  EXPECT_EQ(find_knee(curve({{100, 40}, {200, 20}, {300, 11}, {400, 10.5}, {500, 10}})), 300);
  EXPECT_FALSE(find_knee(curve({{100, 40}, {200, 20}})));
}

}  // namespace
}  // namespace halfwatt
