#include "measure/record_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/sample_record.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

void expect_same(const RecordHeader& found, const RecordHeader& expected) {
  EXPECT_EQ(found.device_id, expected.device_id);
  EXPECT_EQ(found.device, expected.device);
  EXPECT_EQ(found.limits, expected.limits);
  EXPECT_EQ(found.provenance, expected.provenance);
  EXPECT_EQ(found.workload, expected.workload);
  EXPECT_EQ(found.command, expected.command);
  EXPECT_EQ(found.labels, expected.labels);
  EXPECT_EQ(found.knobs, expected.knobs);
  EXPECT_EQ(found.keep_percent, expected.keep_percent);
  EXPECT_EQ(found.reference, expected.reference);
}

void expect_same(const Work& found, const Work& expected) {
  EXPECT_EQ(found.steps, expected.steps);
  EXPECT_EQ(found.duration, expected.duration);
  EXPECT_EQ(found.step_time, expected.step_time);
  EXPECT_EQ(found.step_time_low, expected.step_time_low);
  EXPECT_EQ(found.step_time_high, expected.step_time_high);
  EXPECT_EQ(found.step_time_p05, expected.step_time_p05);
  EXPECT_EQ(found.step_time_p95, expected.step_time_p95);
  EXPECT_EQ(found.items_per_step, expected.items_per_step);
  EXPECT_EQ(found.unit, expected.unit);
}

void expect_same(const Conditions& found, const Conditions& expected) {
  EXPECT_EQ(found.requested_limit, expected.requested_limit);
  EXPECT_EQ(found.enforced_limit, expected.enforced_limit);
  EXPECT_EQ(found.sm_clock, expected.sm_clock);
  EXPECT_EQ(found.memory_clock, expected.memory_clock);
  EXPECT_EQ(found.temperature_start, expected.temperature_start);
  EXPECT_EQ(found.temperature_end, expected.temperature_end);
  EXPECT_EQ(found.fan_percent, expected.fan_percent);
  EXPECT_EQ(found.memory_used, expected.memory_used);
  EXPECT_EQ(found.resident_peak, expected.resident_peak);
  EXPECT_EQ(found.power_capped_share, expected.power_capped_share);
  EXPECT_EQ(found.throttled_share, expected.throttled_share);
}

void expect_same(const Prediction& found, const Prediction& expected) {
  EXPECT_EQ(found.memory, expected.memory);
  EXPECT_EQ(found.step_time, expected.step_time);
  EXPECT_EQ(found.flops, expected.flops);
  EXPECT_EQ(found.emulated, expected.emulated);
}

void expect_same(const Measurement& found, const Measurement& expected) {
  ASSERT_EQ(found.predicted.has_value(), expected.predicted.has_value());
  if (found.predicted) {
    expect_same(*found.predicted, *expected.predicted);
  }
  EXPECT_EQ(found.started, expected.started);
  EXPECT_EQ(found.setting, expected.setting);
  expect_same(found.work, expected.work);
  EXPECT_EQ(found.energy.value, expected.energy.value);
  EXPECT_EQ(found.energy.method, expected.energy.method);
  EXPECT_EQ(found.energy.relative_error, expected.energy.relative_error);
  EXPECT_EQ(found.energy.window_error, expected.energy.window_error);
  expect_same(found.conditions, expected.conditions);
  EXPECT_EQ(found.numerical_state, expected.numerical_state);
  EXPECT_EQ(found.notes, expected.notes);
}

TEST(RecordLine, of_a_header_reads_back_to_the_last_bit) {
  for (const RecordHeader& header : {full_header(), bare_header()}) {
    const auto again = parse_header_line(header_line(header), "x");
    ASSERT_TRUE(again) << again.error().message;
    expect_same(*again, header);
  }
}

TEST(RecordLine, of_a_measurement_reads_back_to_the_last_bit) {
  for (const Measurement& measured : {full_measurement(), bare_measurement()}) {
    const auto again = parse_measurement_line(measurement_line(measured), "x");
    ASSERT_TRUE(again) << again.error().message;
    expect_same(*again, measured);
  }
}

TEST(RecordLine, keeps_every_word_of_every_list_of_words) {
  for (const auto state : {NumericalState::unknown, NumericalState::live,
                           NumericalState::stalled, NumericalState::dead}) {
    Measurement measured = full_measurement();
    measured.numerical_state = state;
    EXPECT_EQ(parse_measurement_line(measurement_line(measured), "x")->numerical_state, state);
  }
  Measurement measured = full_measurement();
  measured.notes.clear();
  for (int i = 0; i <= static_cast<int>(WindowNote::no_progress); ++i) {
    measured.notes.push_back(static_cast<WindowNote>(i));
  }
  EXPECT_EQ(parse_measurement_line(measurement_line(measured), "x")->notes, measured.notes);
}

TEST(RecordLine, is_one_line_whatever_is_in_it) {
  RecordHeader header = full_header();
  header.device = "a\nb\r\xff\x01";
  EXPECT_EQ(header_line(header).find('\n'), std::string::npos);
  EXPECT_EQ(parse_header_line(header_line(header), "x")->device, "a\nb\r\uFFFD\x01");
}

TEST(RecordLine, tells_numbers_from_words_that_look_like_numbers) {
  Measurement measured = bare_measurement();
  measured.setting.set("batch", "64");
  EXPECT_EQ(parse_measurement_line(measurement_line(measured), "x")->setting, measured.setting);
}

TEST(RecordLine, may_have_fields_that_this_version_does_not_know) {
  Json json = Json::parse(measurement_line(full_measurement()));
  json["fresh"] = {1, 2, 3};
  json["work"]["fresh"] = "text";
  EXPECT_TRUE(parse_measurement_line(json.dump(), "x"));
}

/// One way to spoil a line, and the message that this must give.
struct Spoilt {
  const char* name;
  const char* pointer;  ///< JSON pointer to what is replaced
  const char* value;    ///< JSON; empty: removed
  const char* message;  ///< after the place
};

std::string spoil(const std::string& line, const Spoilt& how) {
  Json json = Json::parse(line);
  const Json::json_pointer pointer(how.pointer);
  if (std::string(how.value).empty()) {
    json.at(pointer.parent_pointer()).erase(pointer.back());
  } else {
    json[pointer] = Json::parse(how.value);
  }
  return json.dump();
}

constexpr Spoilt kSpoiltMeasurements[] = {
    {"schema_missing", "/schema", "", "field schema is missing; needed halfwatt.measurement/1"},
    {"schema_no_text", "/schema", "1",
     "field schema is missing; needed halfwatt.measurement/1"},
    {"schema_newer", "/schema", "\"halfwatt.measurement/2\"",
     "field schema is \"halfwatt.measurement/2\"; this version of halfwatt reads "
     "halfwatt.measurement/1"},
    {"schema_of_header", "/schema", "\"halfwatt.record/1\"",
     "field schema is \"halfwatt.record/1\"; this version of halfwatt reads "
     "halfwatt.measurement/1"},
    {"schema_of_two_lines", "/schema", R"("a\nb")",
     "field schema is \"a\\nb\"; this version of halfwatt reads halfwatt.measurement/1"},
    {"started_missing", "/started_s", "", "field started_s is missing"},
    {"started_negative", "/started_s", "-1",
     "field started_s is -1; needed a number of at least 0"},
    {"started_null", "/started_s", "null",  // what NaN becomes in JSON
     "field started_s is null; needed a number of at least 0"},
    {"started_text", "/started_s", "\"7\"",
     "field started_s is \"7\"; needed a number of at least 0"},
    {"started_list", "/started_s", "[1, 2]",
     "field started_s is a list; needed a number of at least 0"},
    {"setting_missing", "/setting", "", "field setting is missing"},
    {"setting_list", "/setting", "[300]", "field setting is no object"},
    {"setting_null", "/setting/batch", "null",
     "field setting holds \"batch\", which is neither number nor text"},
    {"work_missing", "/work", "", "field work is missing"},
    {"work_number", "/work", "5", "field work is 5; needed an object"},
    {"steps_missing", "/work/steps", "", "work: field steps is missing"},
    {"steps_negative", "/work/steps", "-0.5",
     "work: field steps is -0.5; needed a number of at least 0"},
    {"steps_zero", "/work/steps", "0",
     "field work has no steps or no speed, and no note says why"},
    {"duration_text", "/work/duration_s", "\"long\"",
     "work: field duration_s is \"long\"; needed a number of at least 0"},
    {"step_zero", "/work/step_s", "0.0",
     "field work has no steps or no speed, and no note says why"},
    {"step_too_small", "/work/step_s", "1e-320",
     "field work has no steps or no speed, and no note says why"},
    {"step_low_negative", "/work/step_low_s", "-1",
     "work: field step_low_s is -1; needed a number of at least 0"},
    {"step_high_null", "/work/step_high_s", "null",
     "work: field step_high_s is null; needed a number of at least 0"},
    {"items_zero", "/work/items_per_step", "0", "field work has no items in a step"},
    {"unit_missing", "/work/unit", "", "work: field unit is missing"},
    {"unit_number", "/work/unit", "1", "work: field unit is 1; needed a text"},
    {"energy_missing", "/energy", "", "field energy is missing"},
    {"joules_negative", "/energy/joules", "-3",
     "energy: field joules is -3; needed a number of at least 0"},
    {"joules_of_an_item_infinite", "/work/items_per_step", "1e-307",
     "field energy gives no finite joules of an item"},
    {"error_text", "/energy/relative_error", "\"3 %\"",
     "energy: field relative_error is \"3 %\"; needed a number of at least 0"},
    {"window_error_negative", "/energy/window_error", "-0.1",
     "energy: field window_error is -0.1; needed a number of at least 0"},
    {"method_missing", "/energy/method", "", "energy: field method is missing"},
    {"method_unknown", "/energy/method", "\"guess\"",
     "energy: field method is \"guess\"; not an energy method"},
    {"conditions_missing", "/conditions", "", "field conditions is missing"},
    {"clock_true", "/conditions/sm_clock_mhz", "true",
     "conditions: field sm_clock_mhz is true; needed a number of at least 0"},
    {"temperature_below_zero_kelvin", "/conditions/temperature_end_c", "-300",
     "conditions: field temperature_end_c is -300; needed a number of at least -273.15"},
    {"fan_object", "/conditions/fan_percent", "{}",
     "conditions: field fan_percent is an object; needed a number of at least 0"},
    {"share_negative", "/conditions/throttled_share", "-0.1",
     "conditions: field throttled_share is -0.1; needed a number of at least 0"},
    {"notes_text", "/notes", "\"clamped\"", "field notes is no list"},
    {"notes_number", "/notes/1", "5", "field notes holds 5; needed texts"},
    {"notes_unknown", "/notes/1", "\"tired\"",
     "field notes holds \"tired\", which this version does not know"},
    {"state_missing", "/numerical_state", "", "field numerical_state is missing"},
    {"state_unknown", "/numerical_state", "\"fine\"",
     "field numerical_state is \"fine\"; needed live, skipping, stalled, dead or unknown"},
    {"long_text", "/numerical_state", "\"0123456789012345678901234567890123456789\"",
     "field numerical_state is \"012345678901234567890123456789012345678...; needed live, "
     "skipping, "
     "stalled, dead or unknown"},
};

TEST(RecordLine, of_a_measurement_is_refused_with_place_and_field) {
  const std::string whole = measurement_line(full_measurement());
  for (const Spoilt& how : kSpoiltMeasurements) {
    const auto result = parse_measurement_line(spoil(whole, how), "run.jsonl:3");
    ASSERT_FALSE(result) << how.name;
    EXPECT_EQ(result.error().kind, ErrorKind::bad_input) << how.name;
    EXPECT_EQ(result.error().message, std::string("run.jsonl:3: ") + how.message) << how.name;
  }
}

constexpr Spoilt kSpoiltHeaders[] = {
    {"schema_newer", "/schema", "\"halfwatt.record/2\"",
     "field schema is \"halfwatt.record/2\"; this version of halfwatt reads halfwatt.record/1"},
    {"device_id_missing", "/device_id", "", "field device_id is missing"},
    {"device_number", "/device", "3090", "field device is 3090; needed a text"},
    {"provenance_unknown", "/provenance", "\"guessed\"",
     "field provenance is \"guessed\"; needed measured, recorded or simulated"},
    {"workload_missing", "/workload", "", "field workload is missing"},
    {"command_text", "/command", "\"python3\"", "field command is no list"},
    {"command_number", "/command/0", "3", "field command holds 3; needed texts"},
    {"limits_list", "/limits", "[100, 480]", "field limits is a list; needed an object"},
    {"limits_without_end", "/limits/max_w", "", "limits: field max_w is missing"},
    {"limits_crossed", "/limits/max_w", "50", "limits: field max_w is below min_w"},
    {"preset_negative", "/limits/preset_w", "-1",
     "limits: field preset_w is -1; needed a number of at least 0"},
    {"labels_list", "/labels", "[]", "field labels is no object"},
    {"labels_number", "/labels/batch", "160", "field labels holds \"batch\", which is no text"},
    {"knobs_missing", "/knobs", "", "field knobs is missing"},
    {"knobs_empty", "/knobs", "[]", "field knobs is no list with a knob in it"},
    {"knobs_text", "/knobs/0", "\"power_limit\"",
     "field knobs holds a knob without a name, or with a unit or step that is none"},
    {"knobs_nameless", "/knobs/0/name", "\"\"",
     "field knobs holds a knob without a name, or with a unit or step that is none"},
    {"knobs_unit", "/knobs/0/unit", "1",
     "field knobs holds a knob without a name, or with a unit or step that is none"},
    {"keep_number", "/keep_percent", "90", "field keep_percent is no list"},
    {"keep_zero", "/keep_percent/0", "0",
     "field keep_percent holds something that is no share between 0 and 100"},
    {"keep_over", "/keep_percent/0", "101",
     "field keep_percent holds something that is no share between 0 and 100"},
    {"keep_null", "/keep_percent/0", "null",
     "field keep_percent holds something that is no share between 0 and 100"},
    {"reference_missing", "/reference", "", "field reference is missing"},
};

TEST(RecordLine, of_a_header_is_refused_with_place_and_field) {
  const std::string whole = header_line(full_header());
  for (const Spoilt& how : kSpoiltHeaders) {
    const auto result = parse_header_line(spoil(whole, how), "run.jsonl:1");
    ASSERT_FALSE(result) << how.name;
    EXPECT_EQ(result.error().kind, ErrorKind::bad_input) << how.name;
    EXPECT_EQ(result.error().message, std::string("run.jsonl:1: ") + how.message) << how.name;
  }
}

TEST(RecordLine, is_refused_where_it_is_no_json_object) {
  for (const std::string line :
       {"", "{", "[]", "5", "{\"schema\": }", "{} {}", "power_limit_w,1",
        "{\"started_s\": 1e999}", "{\"a\": nan}", "\xff\xfe"}) {
    EXPECT_EQ(parse_measurement_line(line, "x:2").error().message, "x:2: not a JSON object")
        << line;
  }
  EXPECT_EQ(parse_measurement_line(std::string(3, '\0'), "x:2").error().message,
            "x:2: not a JSON object");
}

TEST(RecordLine, may_lack_speed_where_a_note_says_why) {
  Measurement measured = bare_measurement();
  measured.work.steps = 0;
  measured.work.step_time = Seconds(0);
  measured.notes = {WindowNote::no_progress};
  EXPECT_TRUE(parse_measurement_line(measurement_line(measured), "x"));
}

TEST(RecordLine, is_refused_where_its_nesting_would_overflow_a_stack) {
  constexpr std::size_t kDepth = 100'000;
  const std::string line = measurement_line(full_measurement()).substr(1);
  for (const auto& [open, close] : {std::pair{"[", "]"}, {"{\"a\":", "}"}}) {
    std::string deep;
    for (std::size_t i = 0; i < kDepth; ++i) {
      deep += open;
    }
    deep += "1";
    for (std::size_t i = 0; i < kDepth; ++i) {
      deep += close;
    }
    for (const char* field : {"fresh", "started_s", "work"}) {
      const auto result =
          parse_measurement_line(fmt::format("{{\"{}\":{},{}", field, deep, line), "x");
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().message,
                "x: over 1000 fields, or nested deeper than 16; no record is");
    }
  }
}

TEST(RecordLine, may_be_nested_a_little) {
  const std::string line = measurement_line(full_measurement()).substr(1);
  EXPECT_TRUE(parse_measurement_line("{\"fresh\":[[[{\"a\":[1]}]]]," + line, "x"));
}

TEST(RecordLine, shows_text_for_messages_in_one_printable_line) {
  EXPECT_EQ(in_quotes("sim:rtx3090"), "\"sim:rtx3090\"");
  EXPECT_EQ(in_quotes("a\nb\x1b[2J\x7f\u00e9"), R"("a\nb\u001b[2J\u007f\u00e9")");
  EXPECT_EQ(in_quotes("\xff"), R"("\ufffd")");
  EXPECT_EQ(in_quotes(std::string(1000, 'x')).size(), 43U);
}

}  // namespace
}  // namespace halfwatt
