#include "progress/output_reader.h"

#include <algorithm>
#include <limits>

#include "progress/step_message.h"

namespace halfwatt {
namespace {

constexpr std::size_t kMostDigits = 40;

/// `12`, `1,234`, `1_234`, `12.0`; nullopt: not a number to count.
std::optional<double> parse_printed(std::string_view text) {
  std::string digits(text.substr(0, kMostDigits));
  std::erase_if(digits, [](char c) { return c == ',' || c == '_' || c == ' '; });
  return parse_count(digits);
}

std::optional<double> parse_printed_loss(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  return parse_loss(text);
}

}  // namespace

void OutputReader::take(std::string_view bytes, Seconds at) {
  lines_.take(bytes, [this, at](std::string_view line, bool is_whole) {
    return take_line(line, is_whole, at);
  });
}

void OutputReader::restart(Seconds at) {
  lines_.end([this, at](std::string_view line, bool is_whole) {
    return take_line(line, is_whole, at);
  });
  bars_.restart();
  items_.restart();
  losses_.restart();
  step_of_loss_.reset();
}

bool OutputReader::take_line(std::string_view line, bool is_whole, Seconds at) {
  const auto step = take_step(line, is_whole, at);
  if (is_whole) {
    take_loss(line, step);
  }
  return step.has_value();
}

std::optional<double> OutputReader::take_step(std::string_view line,
                                              bool is_whole,
                                              Seconds at) {
  for (const Expression& expression : preset_.steps) {
    const auto match = expression.match(line, is_whole);
    const auto step = match && match->step ? parse_printed(*match->step) : std::nullopt;
    if (!step || counts_bytes(match->rate.value_or(""))) {
      continue;
    }
    const std::string_view label = match->label.value_or("");
    bars_.see({label, match->total, *step, is_aside(label)}, at);
    const auto items = match->items ? parse_printed(*match->items) : std::nullopt;
    if (items) {
      items_.see(*items, at);
    }
    return step;
  }
  return std::nullopt;
}

void OutputReader::take_loss(std::string_view line, std::optional<double> step) {
  for (const Expression& alarm : preset_.alarms) {
    if (alarm.match(line, true)) {
      losses_.see(std::numeric_limits<double>::quiet_NaN(), "nan");
      return;
    }
  }
  for (const Expression& expression : preset_.losses) {
    const auto match = expression.match(line, true);
    const auto loss = match && match->loss ? parse_printed_loss(*match->loss) : std::nullopt;
    if (!loss) {
      continue;
    }
    // A bar that is drawn again shows the same loss again: no news.
    const bool is_news = !step || step != step_of_loss_ || *match->loss != losses_.digits();
    if (is_news) {
      losses_.see(*loss, *match->loss);
    }
    step_of_loss_ = step;
    return;
  }
}

SourceReading OutputReader::reading() const {
  SourceReading reading;
  reading.has_spoken = bars_.has_spoken();
  reading.steps = bars_.steps();
  reading.at = bars_.at();
  reading.changes = bars_.changes();
  reading.fall = bars_.fall();
  if (items_.has_spoken()) {
    reading.items = items_.steps();
  }
  reading.losses = losses_.counts();
  return reading;
}

}  // namespace halfwatt
