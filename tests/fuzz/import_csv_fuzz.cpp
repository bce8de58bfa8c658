// Reads any bytes as a recorded file. An input is up to three parts with a NUL between them:
// the CSV, its sidecar's JSON, and flags, one a line, such as "x=sm_clock_mhz".

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tune/import_csv.h"

namespace halfwatt {
namespace {

std::string_view take_part(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

ImportOptions read_flags(std::string_view text) {
  ImportOptions options;
  while (!text.empty()) {
    std::string_view value = take_part(text, '\n');
    const std::string_view flag = take_part(value, '=');
    if (flag == "x") {
      options.x = value;
    } else if (flag == "y") {
      options.y = value;
    } else if (flag == "items") {
      options.items = value;
    } else if (flag == "label") {
      options.labels.emplace_back(value);
    } else if (flag == "ignore") {
      options.ignore.emplace_back(value);
    }
  }
  return options;
}

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

bool is_one_line(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

/// What everything that reads series relies on.
void check(const Series& series) {
  HALFWATT_CHECK(!series.measurements.empty(), "a series has measurements");
  for (const auto& [name, value] : series.labels) {
    HALFWATT_CHECK(is_one_line(name) && is_one_line(value), "labels are one line");
  }
  for (const Measurement& measurement : series.measurements) {
    const auto x = measurement.setting.number(series.knob.name);
    HALFWATT_CHECK(x && is_positive(*x), "the knob has a value");
    HALFWATT_CHECK(is_positive(measurement.work.items_per_second()), "the speed is a number");
    HALFWATT_CHECK(is_one_line(measurement.work.unit), "the item has a name");
    const auto joules = measurement.joules_per_item();
    HALFWATT_CHECK(!joules || is_positive(joules->value()), "the energy is a number");
    HALFWATT_CHECK(joules.has_value() == (measurement.energy.method != EnergyMethod::none),
                   "energy has a method");
  }
}

void read(std::string_view bytes) {
  const std::string_view csv = take_part(bytes, '\0');
  const std::string_view notes = take_part(bytes, '\0');
  const auto file = import_csv(CsvText{csv, notes, "caps.csv"}, read_flags(bytes));
  if (!file) {
    HALFWATT_CHECK(is_one_line(file.error().message), "an error is one line");
    HALFWATT_CHECK(file.error().message.starts_with("caps."), "an error names the file");
    return;
  }
  HALFWATT_CHECK(!file->series.empty(), "a file that is accepted has series");
  for (const Series& series : file->series) {
    check(series);
  }
  for (const std::string& remark : file->remarks) {
    HALFWATT_CHECK(is_one_line(remark), "a remark is one line");
  }
}

}  // namespace
}  // namespace halfwatt

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  halfwatt::read(bytes);
  return 0;
}
