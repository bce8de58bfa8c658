#include "measure/record.h"

#include <gtest/gtest.h>

#include <string>

#include "measure/record_json.h"
#include "measure/sample_record.h"

namespace halfwatt {
namespace {

/// The lines joined, each with its end.
std::string lines(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& line : all) {
    text += line + "\n";
  }
  return text;
}

std::string message(const std::string& text) {
  const auto record = parse_record(text, "run.jsonl");
  return record ? "no error" : record.error().message;
}

const std::string kHeader = header_line(full_header());
const std::string kWindow = measurement_line(full_measurement());

TEST(Record, holds_a_header_and_any_number_of_windows) {
  for (const int windows : {0, 1, 7}) {
    const auto record = parse_record(record_text(windows), "run.jsonl");
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(record->header.workload, "study:train-fp32");
    EXPECT_EQ(record->measurements.size(), static_cast<std::size_t>(windows));
    EXPECT_FALSE(record->dropped_last_line);
  }
}

TEST(Record, writes_what_it_read_in_the_same_bytes) {
  const auto record = parse_record(record_text(2), "run.jsonl");
  ASSERT_TRUE(record);
  EXPECT_EQ(header_line(record->header), kHeader);
  EXPECT_EQ(measurement_line(record->measurements.back()), kWindow);
}

TEST(Record, drops_a_last_line_that_was_half_written) {
  for (std::size_t length = 1; length < kWindow.size(); length += 13) {
    const auto record = parse_record(record_text(2) + kWindow.substr(0, length), "run.jsonl");
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(record->measurements.size(), 2U);
    EXPECT_TRUE(record->dropped_last_line);
  }
}

TEST(Record, reads_a_last_line_that_lacks_only_its_end) {
  const auto record = parse_record(record_text(2) + kWindow, "run.jsonl");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->measurements.size(), 3U);
  EXPECT_FALSE(record->dropped_last_line);
}

TEST(Record, refuses_a_broken_line_in_the_middle_and_says_where) {
  EXPECT_EQ(message(lines({kHeader, kWindow, kWindow.substr(0, 40), kWindow})),
            "run.jsonl:3: not a JSON object");
  EXPECT_EQ(message(lines({kHeader, "", kWindow})), "run.jsonl:2: not a JSON object");
  EXPECT_EQ(message(lines({kHeader, kWindow, ""})), "run.jsonl:3: not a JSON object");
  std::string negative = kWindow;
  negative.replace(negative.find("\"joules\":"), 9, "\"joules\":-");
  EXPECT_EQ(message(lines({kHeader, negative})),
            "run.jsonl:2: energy: field joules is -1500.3333333333333; needed a number of at "
            "least 0");
}

TEST(Record, refuses_a_broken_last_line_that_was_written_whole) {
  EXPECT_EQ(message(lines({kHeader, kWindow, kWindow.substr(0, 40)})),
            "run.jsonl:3: not a JSON object");
}

TEST(Record, begins_with_its_header) {
  EXPECT_EQ(message(lines({kWindow})),
            "run.jsonl:1: field schema is \"halfwatt.measurement/1\"; this version of halfwatt "
            "reads halfwatt.record/1");
  EXPECT_EQ(
      message(lines({kHeader, kHeader})),
      "run.jsonl:2: field schema is \"halfwatt.record/1\"; this version of halfwatt reads "
      "halfwatt.measurement/1");
}

TEST(Record, refuses_an_empty_file) {
  EXPECT_EQ(message(""), "run.jsonl: the file is empty; needed a record");
}

TEST(Record, refuses_what_is_no_record_at_all) {
  EXPECT_EQ(message("\n"), "run.jsonl:1: not a JSON object");
  EXPECT_EQ(message("power_limit_w,time_s\n300,1\n"), "run.jsonl:1: not a JSON object");
  EXPECT_EQ(message(std::string("\x7f"
                                "ELF\0\0\x01",
                                7)),
            "run.jsonl:1: not a JSON object");
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(message(bytes), "run.jsonl:1: not a JSON object");
}

TEST(Record, refuses_a_line_that_no_record_has) {
  const std::string start = record_text(1);
  EXPECT_EQ(message(start + std::string(1'100'000, ' ') + "\n"),
            "run.jsonl:3: the line has 1100000 bytes; no record has lines over 1048576");
  EXPECT_EQ(message(std::string(1'100'000, '{')),
            "run.jsonl:1: the line has 1100000 bytes; no record has lines over 1048576");
}

TEST(Record, takes_no_long_time_for_a_line_of_many_fields) {
  std::string line = "{";
  for (int i = 0; line.size() < 1'000'000; ++i) {
    line += "\"" + std::to_string(i) + "\":1,";
  }
  line += "\"schema\":\"halfwatt.record/1\"}";
  EXPECT_EQ(message(line + "\n"),
            "run.jsonl:1: over 1000 fields, or nested deeper than 16; no record is");
}

TEST(Record, needs_the_value_of_its_first_knob_in_every_window) {
  Measurement measured = full_measurement();
  measured.setting = Setting();
  measured.setting.set("batch", 64.0);
  EXPECT_EQ(message(lines({kHeader, kWindow, measurement_line(measured)})),
            "run.jsonl:3: field setting: \"power_limit\" is missing");
  for (const auto& [watts, shown] : {std::pair{0.0, "0"}, {-300.0, "-300"}}) {
    measured.setting.set("power_limit", watts);
    EXPECT_EQ(message(lines({kHeader, measurement_line(measured)})),
              std::string("run.jsonl:2: field setting: \"power_limit\" is ") + shown +
                  "; needed more than 0");
  }
  measured.setting.set("power_limit", "low");  // a knob may have words
  EXPECT_EQ(message(lines({kHeader, measurement_line(measured)})), "no error");
}

TEST(Record, bears_line_ends_of_windows) {
  const auto record = parse_record(kHeader + "\r\n" + kWindow + "\r\n", "run.jsonl");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->measurements.size(), 1U);
}

TEST(Record, is_told_from_a_table_by_its_first_byte) {
  EXPECT_TRUE(looks_like_record(record_text(0)));
  EXPECT_FALSE(looks_like_record("power_limit_w,time_s\n"));
  EXPECT_FALSE(looks_like_record(""));
}

TEST(Record, becomes_a_series_of_its_windows_along_its_first_knob) {
  const auto record = parse_record(record_text(3), "run.jsonl");
  ASSERT_TRUE(record);
  const Series series = to_series(*record);
  EXPECT_EQ(series.source, full_header().workload);
  EXPECT_EQ(series.device, full_header().device);
  EXPECT_EQ(series.labels, full_header().labels);
  EXPECT_EQ(series.knob, power_limit_knob());
  EXPECT_EQ(series.provenance, Provenance::measured);
  EXPECT_EQ(series.limits, full_header().limits);
  EXPECT_EQ(series.measurements.size(), 3U);
}

TEST(Record, knows_how_many_cards_its_job_used) {
  Record record{full_header(), {}, false};
  const auto cards = [&record](const std::string& device_id) {
    record.header.device_id = device_id;
    return to_series(record).cards;
  };
  EXPECT_EQ(cards("GPU-1"), 1);
  EXPECT_EQ(cards("GPU-1,GPU-2,GPU-3"), 3);
  EXPECT_EQ(cards("sim:a,b.csv"), 1);
}

TEST(Record, becomes_one_series_for_each_combination_of_its_further_knobs) {
  auto record = parse_record(record_text(4), "run.jsonl");
  ASSERT_TRUE(record);
  record->header.knobs.push_back({"batch", "", {}});
  for (std::size_t i = 0; i < 4; ++i) {
    record->measurements[i].setting = Setting{};
    record->measurements[i].setting.set("batch", i < 3 ? 32. : 64.);
    record->measurements[i].setting.set("power_limit", 200.);
  }
  const std::vector<Series> all = all_series(*record);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(label(all[0].labels, "batch"), "32");
  EXPECT_EQ(label(all[1].labels, "batch"), "64");
  EXPECT_EQ(all[0].measurements.size(), 3U);
  EXPECT_EQ(all[1].measurements.size(), 1U);
}

}  // namespace
}  // namespace halfwatt
