#include <gtest/gtest.h>

#include <algorithm>

#include "tune/embedded.h"
#include "tune/import_claims.h"
#include "tune/playback.h"
#include "tune/scripted_series.h"
#include "tune/verdict.h"

namespace halfwatt {
namespace {

Verdict study() {
  Result<Imported> imported = import_embedded_study();
  EXPECT_TRUE(imported);
  Result<Verdict> verdict = analyze(std::move(imported->series), AnalysisOptions{});
  EXPECT_TRUE(verdict);
  return *std::move(verdict);
}

const SeriesVerdict& named(const Verdict& verdict, std::string_view name) {
  const auto found = std::find(verdict.names.begin(), verdict.names.end(), name);
  EXPECT_NE(found, verdict.names.end()) << name;
  return verdict.series[static_cast<std::size_t>(found - verdict.names.begin())];
}

struct Row {
  std::string_view series;
  double at_80, at_90, at_95, least;
};

// The data column of the table in data/README.md.
constexpr Row kTruth[] = {
    {"train fp32 160", 290, 340, 390, 280},
    {"train tf32 160", 230, 280, 320, 230},
    {"train amp_fp16 160", 250, 300, 350, 240},
    {"train fp16_half 160", 200, 240, 270, 200},
    {"inference fp32 2048", 300, 350, 400, 290},
    {"inference tf32 2048", 250, 310, 350, 240},
    {"inference amp_fp16 2048", 260, 310, 350, 250},
    {"inference fp16_half 2048", 260, 310, 360, 240},
    {"inference fp16_half 512", 260, 320, 360, 230},
    {"inference tensorrt_fp16 512", 290, 350, 390, 280},
};

TEST(Analysis, finds_the_thresholds_and_least_energy_of_the_recorded_study) {
  const Verdict verdict = study();
  ASSERT_EQ(verdict.series.size(), 10U);
  for (const Row& row : kTruth) {
    const SeriesVerdict& each = named(verdict, row.series);
    EXPECT_EQ(each.keep[0].limit, row.at_80) << row.series;
    EXPECT_EQ(each.keep[1].limit, row.at_90) << row.series;
    EXPECT_EQ(each.keep[2].limit, row.at_95) << row.series;
    EXPECT_EQ(each.least->limit, row.least) << row.series;
    EXPECT_EQ(each.least->basis, EnergyBasis::limit_times_time);
    EXPECT_TRUE(each.keep[0].resolvable && each.keep[1].resolvable && each.keep[2].resolvable);
  }
}

TEST(Analysis, finds_the_one_limit_that_suits_every_series_of_a_card) {
  const Verdict verdict = study();
  ASSERT_EQ(verdict.card.size(), 3U);
  const double limits[] = {300, 350, 400};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(verdict.card[i].limit, limits[i]);
    EXPECT_EQ(verdict.card[i].binding_series, "inference fp32 2048");
  }
}

TEST(Analysis, finds_the_ten_limits_in_which_the_article_disagrees_with_its_data) {
  const Verdict verdict = study();
  const auto claims = import_claims(embedded_study_claims(), "claims");
  ASSERT_TRUE(claims);
  ASSERT_EQ(claims->size(), 30U);
  int wrong = 0;
  for (const Claim& claim : *claims) {
    for (const SeriesVerdict& each : verdict.series) {
      const bool about =
          std::all_of(claim.labels.begin(), claim.labels.end(), [&](const auto& pair) {
            return label(each.series.labels, pair.first) == pair.second;
          });
      for (const KeepVerdict& keep : each.keep) {
        if (about && keep.percent == claim.percent) {
          wrong += keep.limit != claim.limit.value() ? 1 : 0;
          EXPECT_LE(std::abs(*keep.limit - claim.limit.value()), 10);
        }
      }
    }
  }
  EXPECT_EQ(wrong, 10);
}

TEST(Analysis, never_advises_a_dead_series) {
  const Verdict verdict = study();
  const SeriesVerdict& dead = named(verdict, "train fp16_half 160");
  EXPECT_EQ(dead.state, NumericalState::dead);
  EXPECT_FALSE(dead.advisable());
  for (const ParetoGroup& group : verdict.pareto) {
    for (const ParetoPoint& point : group.front) {
      EXPECT_NE(verdict.names[point.series], "train fp16_half 160");
    }
  }
}

TEST(Analysis, takes_a_limit_to_be_each_card_s_and_energy_to_be_that_of_all) {
  const auto of_cards = [](int cards, double watts) {
    Series series = scripted_series({{200, 12, watts * 200}, {300, 10, watts * 300}});
    series.cards = cards;
    Result<Verdict> verdict = analyze({std::move(series)}, AnalysisOptions{});
    EXPECT_TRUE(verdict);
    return *std::move(verdict);
  };
  const auto tells_of_too_much = [](const Verdict& verdict) {
    const auto& notes = verdict.series.front().notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& each) {
      return each.find("more than its limit") != std::string::npos;
    });
  };
  EXPECT_FALSE(tells_of_too_much(of_cards(4, 4)));
  EXPECT_TRUE(tells_of_too_much(of_cards(4, 5)));
  EXPECT_TRUE(tells_of_too_much(of_cards(1, 4)));
  const Verdict one = of_cards(1, 0);  // no joules: an estimate
  const Verdict four = of_cards(4, 0);
  EXPECT_DOUBLE_EQ(four.series.front().least->joules_per_item,
                   4 * one.series.front().least->joules_per_item);
}

TEST(Analysis, compares_only_series_that_did_the_same_job) {
  const Verdict verdict = study();
  ASSERT_EQ(verdict.pareto.size(), 2U);  // training and inference
  EXPECT_EQ(verdict.pareto[0].series.size(), 3U);
  EXPECT_EQ(verdict.pareto[1].series.size(), 6U);
}

TEST(Analysis, keeps_on_the_front_only_what_nothing_beats_in_speed_and_energy) {
  const Verdict verdict = study();
  for (const ParetoGroup& group : verdict.pareto) {
    for (std::size_t i = 1; i < group.front.size(); ++i) {
      EXPECT_LT(group.front[i].items_per_second, group.front[i - 1].items_per_second);
      EXPECT_LT(group.front[i].joules_per_item, group.front[i - 1].joules_per_item);
    }
  }
}

TEST(Analysis, says_that_measured_joules_are_power_summed_up) {
  Series series = scripted_series({{200, 20, 250}, {300, 11, 300}, {400, 10, 400}});
  const auto says_it = [&series] {
    const Verdict verdict = *analyze({series}, AnalysisOptions{});
    const auto& notes = verdict.series[0].notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("summed up") != std::string::npos;
    });
  };
  series.provenance = Provenance::measured;
  series.measurements[0].energy.method = EnergyMethod::counter;
  series.measurements[1].energy.method = EnergyMethod::counter;
  series.measurements[2].energy.method = EnergyMethod::counter;
  EXPECT_FALSE(says_it());
  series.measurements[1].energy.method = EnergyMethod::power_integral;
  EXPECT_TRUE(says_it());
  series.provenance = Provenance::recorded;
  EXPECT_FALSE(says_it());
}

TEST(Analysis, names_the_recorded_outlier_and_the_fall_in_speed) {
  const Verdict verdict = study();
  const SeriesVerdict& amp = named(verdict, "train amp_fp16 160");
  const auto says = [&](std::string_view what) {
    return std::any_of(amp.notes.begin(), amp.notes.end(), [what](const std::string& note) {
      return note.find(what) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("outlier: 390 W"));
  EXPECT_TRUE(says("390 W is 0.74 % slower than 380 W"));
}

TEST(Analysis, takes_a_common_series_as_hundred_percent) {
  Series slow = scripted_series({{200, 40}, {300, 22}, {400, 20}});
  Series fast = scripted_series({{200, 15}, {300, 11}, {400, 10}});
  fast.labels[1].second = "fp16";
  AnalysisOptions options;
  options.keep_percent = {50, 60};
  options.relative_to = "fp16";
  const Result<Verdict> verdict = analyze({slow, fast}, options);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->series[0].keep[0].limit, 400);  // 20 ms is half of the common speed
  EXPECT_NEAR(verdict->series[0].keep[0].reached_percent, 50, 1e-9);
  EXPECT_FALSE(verdict->series[0].keep[1].limit);
  EXPECT_EQ(verdict->series[1].keep[1].limit, 200);
}

TEST(Analysis, says_which_series_there_are_when_the_common_one_is_unknown) {
  AnalysisOptions options;
  options.relative_to = "fp8";
  const Result<Verdict> verdict = analyze({scripted_series({{300, 10}, {400, 9}})}, options);
  ASSERT_FALSE(verdict);
  EXPECT_NE(verdict.error().message.find("net fp32"), std::string::npos);
}

TEST(Analysis, refuses_nothing_and_shares_that_are_none) {
  EXPECT_FALSE(analyze({}, AnalysisOptions{}));
  AnalysisOptions options;
  options.keep_percent = {120};
  EXPECT_FALSE(analyze({scripted_series({{300, 10}})}, options));
}

TEST(Analysis, gives_a_card_no_limit_where_a_series_reaches_the_share_nowhere) {
  Series bad = scripted_series({{300, 8}, {400, 10}});
  bad.labels[1].second = "fp16";
  AnalysisOptions options;
  options.reference = Reference::peak;
  options.keep_percent = {90};
  const Result<Verdict> verdict =
      analyze({scripted_series({{300, 11}, {400, 10}}), bad}, options);
  ASSERT_EQ(verdict->card.size(), 1U);
  EXPECT_FALSE(verdict->card[0].limit);
}

TEST(Analysis, marks_a_floor_that_a_search_never_reached) {
  Series series = scripted_series({{300, 10.1}, {400, 10}});
  series.knob.step = 10;
  series.limits = LimitRange{Watts(100), Watts(400), std::nullopt};
  const Result<Verdict> verdict = analyze({series}, AnalysisOptions{});
  EXPECT_EQ(verdict->series[0].keep[1].limit, 300);
  EXPECT_FALSE(verdict->series[0].keep[1].resolvable);
}

TEST(Analysis, advises_the_start_of_a_plateau) {
  AnalysisOptions options;
  options.keep_percent = {100};
  const Result<Verdict> verdict =
      analyze({scripted_series({{200, 20}, {300, 12}, {400, 10.01}, {440, 10.02}, {480, 10}})},
              options);
  EXPECT_EQ(verdict->series[0].keep[0].limit, 400);
}

TEST(Analysis, counts_limit_times_time_no_further_than_the_cap_binds) {
  const Result<Verdict> verdict = analyze(
      {scripted_series({{200, 20}, {300, 10}, {400, 10}, {500, 10}})}, AnalysisOptions{});
  const Curve& curve = verdict->series[0].curve;
  EXPECT_NEAR(joules_per_item(curve, 3, EnergyBasis::limit_times_time), 3.0, 1e-9);
}

TEST(Analysis, says_when_a_series_has_one_point_only) {
  const Result<Verdict> verdict = analyze({scripted_series({{300, 10}})}, AnalysisOptions{});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->series[0].notes.front(), "one point only: nothing to compare it with");
  EXPECT_FALSE(verdict->series[0].keep[0].limit);
}

TEST(Analysis, is_only_as_good_as_its_weakest_input) {
  Series measured = scripted_series({{300, 11}, {400, 10}});
  measured.provenance = Provenance::measured;
  Series simulated = measured;
  simulated.provenance = Provenance::simulated;
  EXPECT_EQ(analyze({measured, simulated}, AnalysisOptions{})->provenance,
            Provenance::simulated);
}

// Half of the traces are not monotone: both readings stand there, and none is called resolved.
TEST(Analysis, gives_both_readings_of_the_traces_that_are_not_monotone) {
  Result<Imported> imported =
      import_csv(std::filesystem::path("data/zeus_nsdi23_power_trace.csv"));
  ASSERT_TRUE(imported);
  const Result<Verdict> verdict = analyze(std::move(imported->series), AnalysisOptions{});
  ASSERT_TRUE(verdict);
  int long_ones = 0;
  int fall = 0;
  int unresolved = 0;
  for (const SeriesVerdict& each : verdict->series) {
    if (each.curve.points.size() < 6) {
      continue;
    }
    ++long_ones;
    fall += find_descents(each.curve).empty() ? 0 : 1;
    bool resolvable = true;
    for (const KeepVerdict& keep : each.keep) {
      EXPECT_FALSE(keep.lower_limit && keep.resolvable);
      resolvable = resolvable && keep.resolvable;
    }
    unresolved += resolvable ? 0 : 1;
  }
  EXPECT_EQ(long_ones, 211);
  EXPECT_GT(fall, 211 * 0.4);
  EXPECT_LT(fall, 211 * 0.8);
  EXPECT_GT(unresolved, 40);
}

TEST(Analysis, finds_the_plateau_of_a_card_that_draws_less_than_its_cap) {
  Result<Imported> imported =
      import_csv(std::filesystem::path("data/club3090_llm_power_caps.csv"));
  ASSERT_TRUE(imported);
  const Result<Verdict> verdict = analyze(std::move(imported->series), AnalysisOptions{});
  ASSERT_TRUE(verdict);
  int plateaus = 0;
  for (const SeriesVerdict& each : verdict->series) {
    if (each.series.device == "RTX 4090") {
      ASSERT_TRUE(each.plateau);
      EXPECT_TRUE(each.plateau->seen_in_draw);
      EXPECT_LE(each.curve.points[each.peak].x, 420);  // it draws 393 W whatever the cap
      ++plateaus;
    }
  }
  EXPECT_EQ(plateaus, 2);
}

TEST(Analysis, advises_nothing_where_only_watts_are_known) {
  Series series = scripted_series({{200, 1000, 190}, {300, 1000, 280}, {400, 1000, 370}});
  for (Measurement& each : series.measurements) {
    each.work.unit = kSecondOfRunning;
  }
  const Result<Verdict> verdict = analyze({series}, AnalysisOptions{});
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->series.front().advisable());
  EXPECT_NE(headline(*verdict).find("watts alone"), std::string::npos);
  EXPECT_TRUE(verdict->card.empty() || !verdict->card.front().limit);
}

}  // namespace
}  // namespace halfwatt
