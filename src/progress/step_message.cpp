#include "progress/step_message.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace halfwatt {
namespace {

constexpr std::string_view kOneMore = "+1";
constexpr std::string_view kSpace = " \t\r\n";

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// Takes one `name=value` into the message; false: not known, or no such value.
bool take_word(std::string_view name, std::string_view value, StepMessage& message) {
  if (name == "step") {
    message.step = parse_count(value);
    return message.step.has_value() || value == kOneMore;
  }
  if (name == "items") {
    message.items = parse_count(value);
    return message.items.has_value();
  }
  if (name == "loss") {
    message.loss = parse_loss(value);
    return message.loss.has_value();
  }
  if (name == "rank") {
    const auto rank = parse_number<std::uint32_t>(value);
    message.rank = rank.value_or(0);
    return rank.has_value();
  }
  if (name == "at") {
    const auto at = parse_loss(value);
    if (at && std::isfinite(*at)) {
      message.at = Seconds(*at);
    }
    return message.at.has_value();
  }
  return false;
}

}  // namespace

std::optional<double> parse_count(std::string_view text) {
  constexpr double kMost = 9007199254740992;  // 2^53: beyond it a double skips whole numbers
  const auto value = parse_loss(text);
  return value && *value >= 0 && *value <= kMost ? value : std::nullopt;
}

std::optional<double> parse_loss(std::string_view text) { return parse_number<double>(text); }

std::string text(const StepMessage& message) {
  std::string line = "step=";
  line += message.step ? fmt::format("{}", *message.step) : std::string(kOneMore);
  if (message.items) {
    line += fmt::format(" items={}", *message.items);
  }
  if (message.loss) {
    line += fmt::format(" loss={}", *message.loss);
  }
  line += fmt::format(" rank={}", message.rank);
  if (message.at) {
    line += fmt::format(" at={:.9f}", message.at->value());
  }
  return line;
}

std::optional<StepMessage> parse_step_message(std::string_view text) {
  StepMessage message;
  bool has_step = false;
  if (text.size() > kMostBytesOfAStepMessage) {
    return std::nullopt;
  }
  while (true) {
    const std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) {
      return has_step ? std::optional(message) : std::nullopt;
    }
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kSpace));
    text.remove_prefix(word.size());
    const std::size_t equals = word.find('=');
    const std::string_view name =
        equals == std::string_view::npos ? "step" : word.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? word : word.substr(equals + 1);
    if (!take_word(name, value, message)) {
      return std::nullopt;
    }
    has_step = has_step || name == "step";
  }
}

}  // namespace halfwatt
