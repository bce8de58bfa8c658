#include "tune/import_notes.h"

#include <gtest/gtest.h>

#include <string>

#include "tune/import_text.h"

namespace halfwatt {
namespace {

constexpr std::string_view kCsv =
    "mode,batch,power_limit_w,ms_per_batch,energy_j\n"
    "train,8,300,100,25\ntrain,8,310,100,25\ninfer,8,300,100,25\n";

std::string notes(const std::string& members) {
  return R"({"schema": "halfwatt.notes/1")" + (members.empty() ? "" : ", " + members) + "}";
}

std::string refusal_of(const std::string& members) { return refusal(kCsv, {}, notes(members)); }

TEST(ImportNotes, tells_source_terms_item_and_how_energy_was_measured) {
  const auto file = imported(
      kCsv, {},
      notes(
          R"("source": "somebody", "terms": "MIT", "item": "image", "energy_method": "counter")"));
  EXPECT_EQ(file.source, "somebody");
  EXPECT_EQ(file.terms, "MIT");
  EXPECT_EQ(file.series[0].measurements[0].work.unit, "image");
  EXPECT_EQ(file.series[0].measurements[0].energy.method, EnergyMethod::counter);
}

TEST(ImportNotes, gives_way_to_the_flag_for_the_item) {
  const auto file = imported(kCsv, {.items = "photo"}, notes(R"("item": "image")"));
  EXPECT_EQ(file.series[0].measurements[0].work.unit, "photo");
}

TEST(ImportNotes, names_the_card_and_its_range) {
  const auto file = imported(
      kCsv, {},
      notes(
          R"("devices": [{"name": "RTX 3090", "min_w": 150, "max_w": 480, "default_w": 390}])"));
  EXPECT_EQ(file.series[1].device, "RTX 3090");
  EXPECT_EQ(file.series[1].limits, (LimitRange{Watts(150), Watts(480), Watts(390)}));
}

TEST(ImportNotes, gives_each_card_of_a_column_its_own_range) {
  const std::string two = notes(R"("devices": [{"name": "A", "min_w": 100, "max_w": 300},
                                               {"name": "B"}])");
  const auto file = imported("gpu,power_limit_w,time_s\nA,300,1\nB,300,1\nC,300,1\n", {}, two);
  ASSERT_EQ(file.series.size(), 3U);
  EXPECT_TRUE(file.series[0].limits);
  EXPECT_FALSE(file.series[1].limits);
  EXPECT_FALSE(file.series[2].limits);
  EXPECT_EQ(file.series[2].device, "C");
  EXPECT_EQ(refusal(kCsv, {}, two),
            "caps.csv:1: the notes name several devices; needed a gpu column");
}

TEST(ImportNotes, marks_the_series_that_have_all_the_labels) {
  const auto file =
      imported(kCsv, {}, notes(R"("series": [{"match": {"mode": "train", "batch": "8"},
                                      "numerical_state": "dead", "reason": "NaN after a step",
                                      "source": "own run"}])"));
  EXPECT_EQ(file.series[0].remark, "NaN after a step (own run)");
  for (const Measurement& measurement : file.series[0].measurements) {
    EXPECT_EQ(measurement.numerical_state, NumericalState::dead);
    EXPECT_FALSE(measurement.counts());
  }
  EXPECT_EQ(file.series[1].remark, "");
  EXPECT_EQ(file.series[1].measurements[0].numerical_state, NumericalState::unknown);
}

TEST(ImportNotes, refuses_a_mark_for_a_series_that_is_not_there) {
  EXPECT_EQ(refusal_of(R"("series": [{"match": {"mode": "Train"}, "numerical_state": "dead",
                          "reason": "r"}])"),
            "caps.csv:1: the notes are about a series 'Train' that is not in the file");
}

TEST(ImportNotes, refuses_what_is_not_json_and_says_from_which_line) {
  EXPECT_EQ(refusal(kCsv, {}, "{\n\"schema\": \"halfwatt.notes/1\",\n oops\n}"),
            "caps.notes.json: not JSON from line 3 on");
  EXPECT_EQ(refusal(kCsv, {}, "[1e999]"), "caps.notes.json: holds a number that is too large");
  EXPECT_EQ(refusal(kCsv, {}, std::string(1000, '[')), "caps.notes.json: nested too deeply");
  EXPECT_EQ(refusal(kCsv, {}, "\x1f\x8b"),
            "caps.notes.json: is compressed (gzip); unpack it first: gunzip FILE");
  EXPECT_EQ(refusal(kCsv, {}, "[]"), "caps.notes.json: document: needed an object");
}

TEST(ImportNotes, refuses_unknown_and_repeated_keys) {
  EXPECT_EQ(refusal_of(R"("itme": "image")"),
            "caps.notes.json: document: unknown key 'itme'; known are schema, source, terms, "
            "item, energy_method, devices, series");
  EXPECT_EQ(refusal_of(R"("item": "image", "item": "token")"),
            "caps.notes.json: key 'item' twice");
  EXPECT_EQ(refusal_of(R"("devices": [{"name": "A", "watts": 1}])"),
            "caps.notes.json: devices: unknown key 'watts'; known are name, min_w, max_w, "
            "default_w");
}

TEST(ImportNotes, refuses_another_schema) {
  EXPECT_EQ(refusal(kCsv, {}, R"({"schema": "halfwatt.notes/2"})"),
            "caps.notes.json: schema is 'halfwatt.notes/2'; needed 'halfwatt.notes/1'");
  EXPECT_EQ(refusal(kCsv, {}, "{}"),
            "caps.notes.json: schema is ''; needed 'halfwatt.notes/1'");
}

TEST(ImportNotes, refuses_values_of_the_wrong_kind) {
  EXPECT_EQ(refusal_of(R"("item": 3)"), "caps.notes.json: document: item must be a text");
  EXPECT_EQ(refusal_of(R"("series": {})"), "caps.notes.json: series must be a list");
  EXPECT_EQ(refusal_of(R"("devices": ["A"])"), "caps.notes.json: devices: needed an object");
  EXPECT_EQ(refusal_of(R"("energy_method": "guess")"),
            "caps.notes.json: energy_method 'guess'; needed counter, power-integral or "
            "average-power");
  EXPECT_EQ(refusal_of(R"("devices": [{"name": "A", "min_w": -1, "max_w": 3}])"),
            "caps.notes.json: A: min_w must be a number of watts such as 300");
  EXPECT_EQ(refusal_of(R"("devices": [{"name": "A", "min_w": 5, "max_w": 3}])"),
            "caps.notes.json: devices: 'A' needs min_w and max_w, ascending");
  EXPECT_EQ(refusal_of(R"("devices": [{"name": "A", "min_w": 1, "max_w": 3, "default_w": 4}])"),
            "caps.notes.json: devices: default_w of 'A' is out of its range");
  EXPECT_EQ(refusal_of(R"("series": [{"match": {"mode": "train"}, "numerical_state": "late",
                          "reason": "r"}])"),
            "caps.notes.json: series: numerical_state 'late'; needed live, skipping, stalled, "
            "dead or "
            "unknown");
  EXPECT_EQ(
      refusal_of(R"("series": [{"match": {"mode": "train"}, "numerical_state": "dead"}])"),
      "caps.notes.json: series: each needs a reason");
  EXPECT_EQ(
      refusal_of(R"("series": [{"match": {}, "numerical_state": "dead", "reason": "r"}])"),
      "caps.notes.json: series: each needs a match such as {\"precision\": \"fp32\"}");
  EXPECT_EQ(refusal_of(R"("series": [{"match": {"batch": 8}, "numerical_state": "dead",
                          "reason": "r"}])"),
            "caps.notes.json: series: match of 'batch' must be a text");
}

}  // namespace
}  // namespace halfwatt
