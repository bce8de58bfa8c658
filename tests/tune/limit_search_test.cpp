#include "tune/limit_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "search/runs.h"
#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

using bench::noises;
using bench::Run;
using bench::run_seeds;
using bench::Summary;
using bench::TrueCurve;

// A few seeds of what bench_search does with a thousand: enough to see the search broken.
constexpr int kSeeds = 12;

Summary summary(const std::vector<TrueCurve>& curves, const bench::Noise& noise) {
  Summary all;
  for (const TrueCurve& curve : curves) {
    for (const Run& run : run_seeds(curve, noise.disturbance, noise.seeds(kSeeds))) {
      all.add(run, bench::grid_steps(curve));
    }
  }
  return all;
}

bench::Noise noise(double window, bool slow) {
  for (const bench::Noise& each : noises()) {
    if (each.window == window && each.slow == slow) {
      return each;
    }
  }
  return {};
}

TEST(LimitSearch, finds_all_thirty_limits_of_the_study_exactly_where_there_is_no_noise) {
  const Summary all = summary(bench::study_curves(), noise(0, false));
  EXPECT_EQ(all.exact(), 100);
  EXPECT_EQ(all.resolved(), 100);
  EXPECT_EQ(all.energy_within(0.1), 100);
}

TEST(LimitSearch, needs_at_most_twelve_of_the_studys_limits_and_half_the_steps_of_a_grid) {
  for (const bench::Noise& each : noises()) {
    const Summary all = summary(bench::study_curves(), each);
    EXPECT_LE(all.most_limits(), 12) << each.name;
    EXPECT_LE(all.steps(), 0.5) << each.name;
  }
}

TEST(LimitSearch, is_within_ten_watts_or_says_not_resolvable_under_noise) {
  const Summary all = summary(bench::study_curves(), noise(0.002, false));
  EXPECT_GE(all.fine(), 95);
  EXPECT_GE(all.resolved(), 95);
  EXPECT_GE(all.energy_within(0.5), 95);
}

TEST(LimitSearch, is_rarely_wrong_about_what_it_calls_resolved_on_curves_nobody_tuned_it_for) {
  std::vector<TrueCurve> families;
  for (std::uint64_t family = 6001; family <= 6020; ++family) {
    families.push_back(bench::made_up_curve(family));
  }
  const Summary all = summary(families, noise(0.005, false));
  EXPECT_LE(all.resolved_but_off(), 2);
  EXPECT_GE(all.kept(), 96);
}

const LimitSpace kSpace{power_limit_knob(10), 150, 480, 10};

std::optional<double> next(const std::vector<Scripted>& windows) {
  const LimitSearch search(kSpace, 480, {80, 90, 95}, SearchBudget{});
  const auto setting = search.next(scripted_series(windows).measurements);
  return setting ? setting->number("power_limit") : std::nullopt;
}

TEST(LimitSearch, begins_with_the_top_and_a_limit_below_most_shares) {
  EXPECT_EQ(next({}), 480);
  EXPECT_EQ(next({{480, 10}}), 260);
}

TEST(LimitSearch, gives_the_same_answer_for_the_same_measurements) {
  const std::vector<Scripted> windows = {{480, 10}, {310, 12}, {230, 16}, {280, 13}};
  EXPECT_EQ(next(windows), next(windows));
}

TEST(LimitSearch, stops_where_the_top_itself_never_counts) {
  Series series = scripted_series({{480, 10}});
  series.measurements[0].notes = {WindowNote::foreign_process, WindowNote::rejected_too_often};
  const LimitSearch search(kSpace, 480, {90}, SearchBudget{});
  EXPECT_FALSE(search.next(series.measurements));
}

TEST(LimitSearch, does_not_ask_again_for_a_limit_whose_windows_are_all_rejected) {
  Series series = scripted_series({{480, 10}, {310, 12}});
  series.measurements[1].notes = {WindowNote::thermal_throttle, WindowNote::rejected_too_often};
  const LimitSearch search(kSpace, 480, {90}, SearchBudget{});
  EXPECT_NE(search.next(series.measurements)->number("power_limit"), 310);
}

TEST(LimitSearch, asks_again_for_a_limit_whose_rejected_window_was_not_given_up) {
  Series series = scripted_series({{480, 10}, {260, 14}});
  series.measurements[1].notes = {WindowNote::thermal_throttle};
  const LimitSearch search(kSpace, 480, {90}, SearchBudget{});
  EXPECT_EQ(search.next(series.measurements)->number("power_limit"), 260);
}

TEST(LimitSearch, measures_another_reference_than_the_top_first) {
  const LimitSearch search(kSpace, 390, {90}, SearchBudget{});
  EXPECT_EQ(search.next({})->number("power_limit"), 390);
  EXPECT_EQ(search.next(scripted_series({{390, 10.2}}).measurements)->number("power_limit"),
            480);
}

TEST(LimitSearch, keeps_to_its_budget) {
  const LimitSearch search(kSpace, 480, {80, 90, 95}, SearchBudget{12, 3});
  EXPECT_FALSE(search.next(scripted_series({{480, 10}, {310, 12}, {230, 16}}).measurements));
}

TEST(LimitSearch, looks_again_at_a_limit_whose_two_windows_contradict_each_other) {
  EXPECT_EQ(next({{480, 10}, {260, 14}, {310, 12}, {230, 16}, {310, 12.5}}), 310);
}

}  // namespace
}  // namespace halfwatt
