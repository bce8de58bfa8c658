#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/command.h"

namespace halfwatt {
namespace {

Result<double> parse_number(std::string_view option, std::string_view text) {
  if (text.empty()) {
    return bad_input(fmt::format("{}: a number is missing", option));
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return bad_input(fmt::format("{} {}: not a number", option, text));
  }
  return value;
}

}  // namespace

void Invocation::add(std::string_view option, std::string value) {
  values_[std::string(option)].push_back(std::move(value));
}

std::optional<std::string> Invocation::get(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::nullopt : std::optional(found->second.back());
}

std::vector<std::string> Invocation::all(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Result<double> Invocation::number(std::string_view option,
                                  double otherwise,
                                  double low,
                                  double high) const {
  const auto given = get(option);
  if (!given) {
    return otherwise;
  }
  Result<double> value = parse_number(option, *given);
  if (value && (*value < low || *value > high)) {
    return bad_input(
        fmt::format("{} {}: needed a number from {:g} to {:g}", option, *given, low, high));
  }
  return value;
}

Result<double> Invocation::whole(std::string_view option,
                                 double otherwise,
                                 double low,
                                 double high) const {
  Result<double> value = number(option, otherwise, low, high);
  if (value && *value != std::floor(*value)) {
    return bad_input(fmt::format("{} {}: needed a whole number", option, *get(option)));
  }
  return value;
}

Result<std::vector<double>> Invocation::numbers(std::string_view option,
                                                std::vector<double> otherwise) const {
  const auto given = get(option);
  if (!given) {
    return otherwise;
  }
  std::vector<double> values;
  std::string_view rest = *given;
  while (true) {
    const std::size_t comma = rest.find(',');
    const Result<double> value = parse_number(option, rest.substr(0, comma));
    if (!value) {
      return value.error();
    }
    values.push_back(*value);
    if (comma == std::string_view::npos) {
      return values;
    }
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace halfwatt
