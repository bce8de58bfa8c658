#include "tune/verdict_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

Verdict verdict_on(Series series) { return *analyze({std::move(series)}, AnalysisOptions{}); }

TEST(VerdictJson, holds_what_its_schema_promises) {
  Series series = scripted_series({{200, 20}, {300, 11}, {400, 10}});
  series.limits = LimitRange{Watts(100), Watts(450), std::nullopt};
  const auto json = nlohmann::json::parse(verdict_json(verdict_on(series)));
  EXPECT_EQ(json["schema"], "halfwatt.verdict/1");
  EXPECT_EQ(json["provenance"], "recorded");
  EXPECT_EQ(json["device"]["name"], "card");
  EXPECT_EQ(json["device"]["max_w"], 450);
  EXPECT_TRUE(json["device"]["preset_w"].is_null());
  const auto& one = json["series"][0];
  EXPECT_EQ(one["labels"]["precision"], "fp32");
  EXPECT_EQ(one["unit"], "image");
  EXPECT_EQ(one["points"], 3);
  EXPECT_EQ(one["reference_w"], 400);
  EXPECT_EQ(one["peak"]["limit_w"], 400);
  EXPECT_NEAR(one["peak"]["items_per_s"].get<double>(), 100, 1e-9);
  EXPECT_EQ(one["keep"][1]["percent"], 90);
  EXPECT_EQ(one["keep"][1]["limit_w"], 300);
  EXPECT_TRUE(one["keep"][1]["resolvable"].get<bool>());
  EXPECT_EQ(one["keep"][1]["interval_w"], (std::vector<double>{200, 300}));
  EXPECT_EQ(one["least_energy"]["basis"], "limit-times-time");
  EXPECT_EQ(one["least_energy"]["flat_w"], (std::vector<double>{300, 300}));
  EXPECT_EQ(one["numerical_state"], "unknown");
  EXPECT_EQ(json["pareto"][0]["front"].size(), 2U);
}

TEST(VerdictJson, names_limits_in_the_unit_of_the_knob) {
  Series series = scripted_series({{1200, 11, 300}, {1800, 10, 400}});
  series.knob = Knob{"sm_clock", "MHz"};
  for (Measurement& each : series.measurements) {
    const double x = *each.setting.number("power_limit");
    each.setting = Setting();
    each.setting.set("sm_clock", x);
  }
  const auto json = nlohmann::json::parse(verdict_json(verdict_on(series)));
  EXPECT_EQ(json["series"][0]["keep"][0]["limit_mhz"], 1200);
}

TEST(VerdictJson, tells_how_far_joules_are_off_together_and_each) {
  Series series = scripted_series({{200, 20, 250}, {300, 11, 300}, {400, 10, 400}});
  const auto least = [&series] {
    return nlohmann::json::parse(verdict_json(verdict_on(series)))["series"][0]["least_energy"];
  };
  EXPECT_FALSE(least().contains("relative_error"));
  EXPECT_FALSE(least().contains("window_error"));
  series.measurements[0].energy.window_error = 0.002;
  series.measurements[1].energy.window_error = 0.001;
  series.measurements[1].energy.relative_error = 0.06;
  series.measurements[2].energy.window_error = 0.5;
  series.measurements[2].notes = {WindowNote::foreign_process};
  EXPECT_EQ(least()["relative_error"], 0.06);
  EXPECT_EQ(least()["window_error"], 0.002);
}

TEST(VerdictJson, says_null_for_what_is_unknown) {
  Series series = scripted_series({{300, 10}});
  series.measurements[0].notes = {WindowNote::no_progress};
  const auto json = nlohmann::json::parse(verdict_json(verdict_on(series)));
  EXPECT_TRUE(json["series"][0]["peak"].is_null());
  EXPECT_TRUE(json["series"][0]["reference_w"].is_null());
  EXPECT_TRUE(json["series"][0]["least_energy"].is_null());
}

TEST(VerdictCsv, has_a_row_for_each_series_and_share) {
  Series series = scripted_series({{200, 20}, {300, 11}, {400, 10}});
  series.labels = {{"workload", "a, \"b\""}};
  const std::string csv = verdict_csv(verdict_on(series));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_NE(csv.find("\"a, \"\"b\"\"\",card,recorded,power_limit,W,90,300,"),
            std::string::npos);
}

}  // namespace
}  // namespace halfwatt
