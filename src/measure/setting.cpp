#include "measure/setting.h"

#include <fmt/format.h>

#include <algorithm>

namespace halfwatt {

void Setting::set(std::string_view knob, KnobValue value) {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [knob](const auto& pair) { return pair.first == knob; });
  if (found != values_.end()) {
    found->second = std::move(value);
  } else {
    values_.emplace_back(knob, std::move(value));
  }
}

std::optional<double> Setting::number(std::string_view knob) const {
  for (const auto& [name, value] : values_) {
    if (name == knob && std::holds_alternative<double>(value)) {
      return std::get<double>(value);
    }
  }
  return std::nullopt;
}

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

std::string text(const KnobValue& value) {
  return std::holds_alternative<double>(value) ? number_text(std::get<double>(value))
                                               : std::get<std::string>(value);
}

std::string text(const Setting& setting) {
  std::string joined;
  for (const auto& [name, value] : setting.values()) {
    joined += fmt::format("{}{}={}", joined.empty() ? "" : " ", name, text(value));
  }
  return joined;
}

}  // namespace halfwatt
