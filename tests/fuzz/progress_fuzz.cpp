// Reads any bytes as the output of a job and as messages of its steps, in pieces of a size that
// the first byte says.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "progress/output_reader.h"
#include "progress/step_message.h"

namespace halfwatt {
namespace {

void read_output(std::string_view bytes, std::size_t piece) {
  OutputReader output(*preset("auto"));
  double last = 0;
  double time = 0;
  while (!bytes.empty()) {
    const std::string_view now = bytes.substr(0, piece);
    bytes.remove_prefix(now.size());
    output.take(now, Seconds(time));
    const SourceReading reading = output.reading();
    HALFWATT_CHECK(std::isfinite(reading.steps), "steps are a number");
    HALFWATT_CHECK(reading.steps >= last, "steps never go back");
    HALFWATT_CHECK(reading.at <= Seconds(time), "no step is of the future");
    HALFWATT_CHECK(reading.losses.dead <= reading.losses.told, "losses add up");
    last = reading.steps;
    time += 1;
  }
  output.restart(Seconds(time));
}

void read_message(std::string_view bytes) {
  const auto message = parse_step_message(bytes);
  if (!message) {
    return;
  }
  const auto again = parse_step_message(text(*message));
  HALFWATT_CHECK(again.has_value(), "what is written can be read");
  HALFWATT_CHECK(again->step == message->step, "what is written reads the same");
}

}  // namespace
}  // namespace halfwatt

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.empty()) {
    halfwatt::read_output(bytes.substr(1), static_cast<std::size_t>(data[0]) + 1);
    halfwatt::read_message(bytes);
  }
  return 0;
}
