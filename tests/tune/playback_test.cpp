#include "tune/playback.h"

#include <gtest/gtest.h>

#include <set>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

TEST(Playback, offers_all_ten_series_of_the_embedded_study_by_short_names) {
  const auto all = embedded_study();
  ASSERT_TRUE(all);
  std::set<std::string> names;
  for (const RecordedSeries& each : *all) {
    names.insert(each.info.name);
    EXPECT_EQ(each.curve.size(), 34U);
    EXPECT_EQ(each.info.unit, "image");
    EXPECT_EQ(each.card.limits, (LimitRange{Watts(150), Watts(480), Watts(390)}));
  }
  EXPECT_EQ(names.size(), 10U);
  EXPECT_TRUE(names.count("study:train-fp32"));
  EXPECT_TRUE(names.count("study:inference-fp16-half-2048"));
  EXPECT_TRUE(names.count("study:inference-fp16-half-512"));
}

TEST(Playback, remembers_that_a_series_is_dead) {
  const auto all = embedded_study();
  for (const RecordedSeries& each : *all) {
    EXPECT_EQ(each.state == NumericalState::dead, each.info.name == "study:train-fp16-half");
  }
}

TEST(Playback, takes_the_lowest_limit_that_gains_nothing_more_for_the_demand) {
  const auto all =
      playable({scripted_series({{200, 20}, {300, 10.04}, {350, 10.02}, {400, 10}})}, "file");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].demand, Watts(300));
}

TEST(Playback, joins_repeats_of_a_limit_by_their_median) {
  const auto all =
      playable({scripted_series({{300, 10}, {300, 11}, {300, 30}, {400, 9}})}, "file");
  EXPECT_NEAR(all[0].curve[0].step_time.value(), 0.011, 1e-12);
}

TEST(Playback, leaves_out_what_has_no_two_power_limits) {
  Series clocks = scripted_series({{300, 10}, {400, 9}});
  clocks.knob = Knob{"sm_clock", "MHz"};
  EXPECT_TRUE(playable({clocks, scripted_series({{300, 10}})}, "file").empty());
}

}  // namespace
}  // namespace halfwatt
