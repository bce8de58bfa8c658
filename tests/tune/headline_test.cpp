#include <gtest/gtest.h>

#include "tune/scripted_series.h"
#include "tune/verdict.h"

namespace halfwatt {
namespace {

std::string headline_of(std::vector<Series> series) {
  const Result<Verdict> verdict = analyze(std::move(series), AnalysisOptions{});
  return verdict ? headline(*verdict) : verdict.error().message;
}

Series preset(Series series, double watts) {
  series.limits = LimitRange{Watts(100), Watts(500), Watts(watts)};
  return series;
}

TEST(Headline, says_what_the_advised_limit_costs_and_saves_against_the_preset) {
  EXPECT_EQ(headline_of({preset(
                scripted_series({{200, 20, 200}, {300, 10.5, 290}, {390, 10, 375}}), 390)}),
            "300 W instead of 390 W: 5 % slower, 19 % fewer joules.");
}

TEST(Headline, says_what_was_measured_where_there_is_one_point) {
  EXPECT_EQ(headline_of({scripted_series({{700, 10, 690}, {700, 10, 690}})}),
            "100 images a second and 6.9 J an image at 700 W.");
}

TEST(Headline, says_when_the_joules_are_an_estimate) {
  EXPECT_EQ(
      headline_of({scripted_series({{200, 20}, {300, 10.5}, {400, 10}})}),
      "300 W instead of 400 W: 5 % slower, 21 % fewer joules (limit x time, an estimate).");
}

TEST(Headline, interpolates_a_preset_between_near_limits) {
  EXPECT_EQ(headline_of({preset(
                scripted_series({{300, 10.5, 300}, {340, 10.25, 340}, {380, 10, 380}}), 360)}),
            "300 W instead of 360 W: 4 % slower, 14 % fewer joules.");
}

TEST(Headline, compares_with_the_reference_where_the_preset_lies_in_a_wide_gap) {
  EXPECT_EQ(headline_of({preset(scripted_series({{300, 10.5, 300}, {400, 10, 400}}), 350)}),
            "300 W instead of 400 W: 5 % slower, 21 % fewer joules.");
}

TEST(Headline, does_not_advise_what_costs_both_speed_and_energy) {
  EXPECT_TRUE(
      headline_of({scripted_series({{200, 10.5, 450}, {300, 10.2, 440}, {400, 10, 400}})})
          .starts_with("No resolvable limit below 400 W"));
}

TEST(Headline, covers_all_workloads_of_a_card) {
  Series other = scripted_series({{200, 40, 200}, {300, 20, 290}, {400, 19.9, 300}});
  other.labels[1].second = "fp16";
  EXPECT_EQ(
      headline_of({scripted_series({{200, 20, 200}, {300, 10.4, 300}, {400, 10, 400}}), other}),
      "300 W instead of 400 W: 1 to 4 % slower, 3 to 22 % fewer joules, over 2 workloads.");
}

TEST(Headline, advises_nothing_where_all_is_dead) {
  Series dead = scripted_series({{300, 10}, {400, 9}});
  for (Measurement& each : dead.measurements) {
    each.numerical_state = NumericalState::dead;
  }
  EXPECT_TRUE(headline_of({dead}).starts_with("Nothing can be advised"));
}

TEST(Headline, says_when_no_limit_below_todays_keeps_a_share) {
  EXPECT_TRUE(headline_of({scripted_series({{300, 30}, {400, 10}})})
                  .starts_with("No resolvable limit below 400 W"));
}

}  // namespace
}  // namespace halfwatt
