// Reads any bytes as a record. What is read must be written again in lines that read the same.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "measure/record.h"
#include "measure/record_json.h"

namespace halfwatt {
namespace {

constexpr std::string_view kFile = "run.jsonl";

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

bool is_one_line(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

void check(const Error& error) {
  HALFWATT_CHECK(error.kind == ErrorKind::bad_input, "a bad record is bad input");
  HALFWATT_CHECK(is_one_line(error.message), "an error is one line");
  HALFWATT_CHECK(error.message.starts_with(kFile), "an error names the file");
}

/// What everything that reads measurements relies on.
void check(const Measurement& measured, const Knob& knob) {
  const auto& values = measured.setting.values();
  HALFWATT_CHECK(std::ranges::any_of(
                     values, [&knob](const auto& value) { return value.first == knob.name; }),
                 "the setting has the knob");
  const auto x = measured.setting.number(knob.name);
  HALFWATT_CHECK(!x || is_positive(*x), "the knob's number is positive");
  if (measured.counts()) {
    HALFWATT_CHECK(is_positive(measured.work.items_per_second()), "the speed is a number");
    const auto joules = measured.joules_per_item();
    HALFWATT_CHECK(!joules || std::isfinite(joules->value()), "the energy is a number");
  }
}

std::string text_of(const Record& record) {
  std::string text = header_line(record.header) + "\n";
  for (const Measurement& measured : record.measurements) {
    text += measurement_line(measured) + "\n";
  }
  return text;
}

void read(std::string_view bytes) {
  const auto record = parse_record(bytes, std::string(kFile));
  if (!record) {
    check(record.error());
    return;
  }
  HALFWATT_CHECK(!record->header.knobs.empty(), "a record has a knob");
  for (const Measurement& measured : record->measurements) {
    check(measured, record->header.knobs.front());
  }
  const std::string text = text_of(*record);
  const auto again = parse_record(text, std::string(kFile));
  HALFWATT_CHECK(again.has_value(), "what is written can be read");
  HALFWATT_CHECK(!again->dropped_last_line, "what is written is whole");
  HALFWATT_CHECK(text_of(*again) == text, "what is written reads the same");
}

}  // namespace
}  // namespace halfwatt

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  halfwatt::read(bytes);
  return 0;
}
