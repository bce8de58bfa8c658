#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "measure/setting.h"

namespace halfwatt {

/// A knob of a command, and what it may be set to.
struct KnobValues {
  Knob knob;
  std::vector<KnobValue> values;
  bool operator==(const KnobValues&) const = default;
};

/// Reads "batch=32,64,128". A value is a number if it is written as we would write it, and a
/// word otherwise, so that it goes into the command as it was typed. Errors: bad input that
/// names --knob.
Result<KnobValues> parse_knob(std::string_view text);

/// A command in which `{name}` stands for the value of a knob. `{{name}}` is the text
/// "{name}"; all other braces are left alone, since commands may contain any.
class CommandTemplate {
 public:
  /// Errors: no command, or a knob that appears nowhere in it or twice in `knobs`.
  static Result<CommandTemplate> make(std::vector<std::string> words,
                                      const std::vector<KnobValues>& knobs);

  /// The words with the values of `setting`. Errors: it has no value for a knob.
  Result<std::vector<std::string>> fill(const Setting& setting) const;
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
  std::vector<std::string> names_;
};

/// How many items one step does: "32", "{batch}", "2*{batch}*{accumulate}".
class ItemsExpression {
 public:
  /// Errors: bad input that names --items: not factors that are numbers or knobs of `knobs`.
  static Result<ItemsExpression> parse(std::string_view text,
                                       const std::vector<KnobValues>& knobs);
  /// Its value. Errors: a knob whose value is a word, or is missing.
  Result<double> value(const Setting& setting) const;

 private:
  struct Factor {
    double number = 1;
    std::string knob;  ///< empty: `number`
  };
  std::vector<Factor> factors_;
};

}  // namespace halfwatt
