#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace halfwatt {

/// A knob's value: a number with the knob's unit, or a word such as a precision.
using KnobValue = std::variant<double, std::string>;

/// One axis of the space that a search walks.
struct Knob {
  std::string name;  ///< "power_limit", "batch", "precision", "sm_clock"
  std::string unit;  ///< "W", "MHz", empty for a word or a count
  std::optional<double> step =
      {};  ///< between values that were open to choice; unknown of a file
  bool operator==(const Knob&) const = default;
};

/// The knob that limits a card's power, in watts.
inline Knob power_limit_knob(std::optional<double> step = {}) {
  return {"power_limit", "W", step};
}

/// One point of that space: knob names with their values, in the order they were set.
class Setting {
 public:
  void set(std::string_view knob, KnobValue value);
  /// The numeric value of `knob`; nullopt if absent or a word.
  std::optional<double> number(std::string_view knob) const;
  const std::vector<std::pair<std::string, KnobValue>>& values() const { return values_; }
  bool operator==(const Setting&) const = default;

 private:
  std::vector<std::pair<std::string, KnobValue>> values_;
};

/// A number as people write it: no trailing zeros, at most six significant digits.
std::string number_text(double value);
/// The knob's value without its unit.
std::string text(const KnobValue& value);
/// "power_limit=300 batch=64".
std::string text(const Setting& setting);

}  // namespace halfwatt
