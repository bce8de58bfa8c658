#include "tune/shares.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

constexpr double kStep = 10;  // W, of a search

KeepVerdict keep(const std::vector<Scripted>& windows,
                 double percent,
                 std::optional<double> step = {}) {
  const Curve curve = build_curve(scripted_series(windows), Reference::top);
  return Shares(curve).keep(percent, step);
}

TEST(Shares, advises_the_lowest_limit_such_that_it_and_all_higher_ones_keep_the_share) {
  const KeepVerdict verdict = keep({{200, 20}, {300, 11}, {400, 10.5}, {480, 10}}, 90);
  EXPECT_EQ(verdict.limit, 300);
  EXPECT_NEAR(verdict.reached_percent, 100.0 / 1.1, 1e-9);
  EXPECT_TRUE(verdict.resolvable);
}

TEST(Shares, interpolates_speed_on_a_straight_line_between_measured_limits) {
  const KeepVerdict verdict = keep({{200, 20}, {300, 12.5}, {400, 10}}, 90);
  EXPECT_EQ(verdict.limit, 400);
  EXPECT_NEAR(*verdict.interpolated, 350, 1e-9);  // 80 % at 300 W, 100 % at 400 W
  EXPECT_EQ(verdict.interval, std::make_pair(300.0, 400.0));
}

TEST(Shares, counts_a_share_reached_to_the_last_digit_as_reached) {
  EXPECT_EQ(keep({{300, 12.5}, {400, 10}}, 80).limit, 300);
}

TEST(Shares, gives_both_readings_where_a_lower_limit_reaches_the_share_too) {
  const KeepVerdict verdict =
      keep({{200, 20}, {250, 11.0}, {300, 11.3}, {350, 10.8}, {400, 10}}, 90);
  EXPECT_EQ(verdict.limit, 350);
  EXPECT_EQ(verdict.lower_limit, 250);
  EXPECT_FALSE(verdict.resolvable);
  EXPECT_EQ(verdict.interval, std::make_pair(250.0, 350.0));
}

TEST(Shares, says_when_even_the_lowest_measured_limit_keeps_the_share) {
  const KeepVerdict verdict = keep({{300, 10.1}, {400, 10}}, 90);
  EXPECT_EQ(verdict.limit, 300);
  EXPECT_TRUE(verdict.at_floor);
}

TEST(Shares, finds_none_where_not_even_the_highest_limit_reaches_it) {
  const Curve curve = build_curve(scripted_series({{300, 8}, {400, 10}}), Reference::peak);
  const KeepVerdict verdict = Shares(curve).keep(90, kStep);
  EXPECT_FALSE(verdict.limit);
  EXPECT_FALSE(verdict.resolvable);
}

TEST(Shares, smooths_only_where_repeats_tell_the_noise) {
  const Curve once = build_curve(scripted_series({{300, 11}, {400, 10}}), Reference::top);
  EXPECT_DOUBLE_EQ(Shares(once).log_share(0), std::log(once.share(0)));
  const Curve repeated = build_curve(
      scripted_series({{300, 11}, {350, 10.6}, {400, 10}, {400, 10.02}}), Reference::top);
  EXPECT_NE(Shares(repeated).log_share(0), std::log(repeated.share(0)));
}

TEST(Shares, states_an_interval_that_widens_with_the_noise) {
  const auto width = [](double spread) {
    const Curve curve = build_curve(scripted_series({{480, 10 - spread, 0, 0},
                                                     {480, 10 + spread, 0, 0},
                                                     {300, 11.5},
                                                     {320, 11.2},
                                                     {340, 11.0 - spread, 0, 0},
                                                     {340, 11.0 + spread, 0, 0},
                                                     {360, 10.8}}),
                                    Reference::top);
    const KeepVerdict verdict = Shares(curve).keep(90, kStep);
    return verdict.interval->second - verdict.interval->first;
  };
  EXPECT_GT(width(0.10), 2 * width(0.005));
}

TEST(Shares, is_not_resolvable_where_the_noise_allows_an_answer_two_steps_away) {
  const std::vector<Scripted> noisy = {
      {480, 9.8, 0, 0}, {480, 10.2, 0, 0}, {340, 10.6, 0, 0}, {340, 11.3, 0, 0}, {300, 11.5}};
  EXPECT_FALSE(keep(noisy, 90, kStep).resolvable);
}

TEST(Shares, is_not_resolvable_where_a_search_left_a_wide_gap_below_its_answer) {
  EXPECT_FALSE(keep({{310, 12}, {480, 10}}, 90, kStep).resolvable);
  EXPECT_TRUE(
      keep({{310, 12}, {480, 10}}, 90).resolvable);  // of a file: its grid is the choice
}

TEST(Shares, is_not_resolvable_beside_a_fall_that_is_larger_than_what_decides) {
  EXPECT_FALSE(
      keep({{200, 20}, {250, 11.2}, {300, 11.09}, {350, 11.2}, {400, 11.0}, {450, 10}}, 90)
          .resolvable);
  EXPECT_TRUE(keep({{200, 20}, {250, 13}, {300, 10.9}, {350, 10.7}, {400, 10.8}, {450, 10}}, 90)
                  .resolvable);  // the fall is far from the answer
}

TEST(Shares, gives_no_answer_from_one_point) { EXPECT_FALSE(keep({{300, 10}}, 90).limit); }

TEST(Shares, finds_crossings_of_knobs_of_any_size) {
  for (const double scale : {1e-3, 1.0, 1e7}) {
    const KeepVerdict verdict = keep({{100 * scale, 30},
                                      {100 * scale, 31},
                                      {200 * scale, 20},
                                      {400 * scale, 12.5},
                                      {800 * scale, 10},
                                      {800 * scale, 10.1}},
                                     70);
    ASSERT_TRUE(verdict.interpolated) << scale;
    EXPECT_GT(*verdict.interpolated, 200 * scale);
    EXPECT_LT(*verdict.interpolated, 400 * scale);
    EXPECT_LT(verdict.interval->first, verdict.interval->second);
  }
}

}  // namespace
}  // namespace halfwatt
