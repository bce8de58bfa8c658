#include "measure/command_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace halfwatt {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-';
         });
}

std::optional<double> as_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

KnobValue knob_value(std::string_view text) {
  const std::optional<double> number = as_number(text);
  return number && number_text(*number) == text ? KnobValue(*number)
                                                : KnobValue(std::string(text));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

std::optional<std::string> value_of(const Setting& setting, std::string_view knob) {
  for (const auto& [name, value] : setting.values()) {
    if (name == knob) {
      return text(value);
    }
  }
  return std::nullopt;
}

// Calls `knob` for each {name} and `literal` for all between them, {{name}} as {name}.
template <class OnKnob, class OnText>
void walk(std::string_view word,
          const std::vector<std::string>& names,
          const OnKnob& knob,
          const OnText& literal) {
  while (!word.empty()) {
    const std::size_t open = word.find('{');
    literal(word.substr(0, open));
    if (open == std::string_view::npos) {
      return;
    }
    word.remove_prefix(open);
    const auto named = [&](std::string_view before, std::string_view after) {
      return std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        return word.starts_with(std::string(before) + name + std::string(after));
      });
    };
    if (const auto escaped = named("{{", "}}"); escaped != names.end()) {
      literal("{" + *escaped + "}");
      word.remove_prefix(escaped->size() + 4);
    } else if (const auto plain = named("{", "}"); plain != names.end()) {
      knob(*plain);
      word.remove_prefix(plain->size() + 2);
    } else {
      literal("{");
      word.remove_prefix(1);
    }
  }
}

}  // namespace

Result<KnobValues> parse_knob(std::string_view typed) {
  const std::size_t equals = typed.find('=');
  const std::string_view name = typed.substr(0, equals);
  if (equals == std::string_view::npos || !is_name(name)) {
    return bad_input(fmt::format("--knob {}: needed NAME=VALUE,VALUE,...", typed));
  }
  if (name == power_limit_knob().name) {
    return bad_input(
        fmt::format("--knob {}: the power limit is no knob of a command; see --limits", typed));
  }
  KnobValues knob{{std::string(name), "", {}}, {}};
  for (const std::string_view each : split(typed.substr(equals + 1), ',')) {
    KnobValue value = knob_value(each);
    if (each.empty() ||
        std::find(knob.values.begin(), knob.values.end(), value) != knob.values.end()) {
      return bad_input(fmt::format(
          "--knob {}: {}", typed,
          each.empty() ? "a value is empty" : fmt::format("{} stands there twice", each)));
    }
    knob.values.push_back(std::move(value));
  }
  return knob;
}

Result<CommandTemplate> CommandTemplate::make(std::vector<std::string> words,
                                              const std::vector<KnobValues>& knobs) {
  if (words.empty() || words.front().empty()) {
    return bad_input("no command; needed one behind --: halfwatt tune -- python train.py");
  }
  CommandTemplate made;
  made.words_ = std::move(words);
  for (const KnobValues& each : knobs) {
    const std::string& name = each.knob.name;
    if (std::find(made.names_.begin(), made.names_.end(), name) != made.names_.end()) {
      return bad_input(fmt::format("--knob {}: given twice", name));
    }
    made.names_.push_back(name);
  }
  for (const std::string& name : made.names_) {
    bool used = false;
    for (const std::string& word : made.words_) {
      walk(
          word, made.names_, [&](const std::string& found) { used = used || found == name; },
          [](std::string_view) {});
    }
    if (!used) {
      return bad_input(
          fmt::format("--knob {0}: the command does not use it; needed {{{0}}} "
                      "where its value is to stand",
                      name));
    }
  }
  return made;
}

Result<std::vector<std::string>> CommandTemplate::fill(const Setting& setting) const {
  std::vector<std::string> filled;
  std::string missing;
  for (const std::string& word : words_) {
    std::string& made = filled.emplace_back();
    walk(
        word, names_,
        [&](const std::string& name) {
          const std::optional<std::string> value = value_of(setting, name);
          missing = value ? missing : name;
          made += value.value_or("");
        },
        [&](std::string_view literal) { made += literal; });
  }
  if (!missing.empty()) {
    return bad_input(fmt::format("{}: no value for {{{}}}", words_.front(), missing));
  }
  return filled;
}

Result<ItemsExpression> ItemsExpression::parse(std::string_view typed,
                                               const std::vector<KnobValues>& knobs) {
  ItemsExpression made;
  for (const std::string_view part : split(typed, '*')) {
    const bool braces = part.size() > 2 && part.front() == '{' && part.back() == '}';
    const std::string_view name = braces ? part.substr(1, part.size() - 2) : "";
    const bool known = std::any_of(knobs.begin(), knobs.end(), [name](const KnobValues& each) {
      return each.knob.name == name;
    });
    const std::optional<double> number = as_number(part);
    if (known) {
      made.factors_.push_back({1, std::string(name)});
    } else if (number && *number > 0) {
      made.factors_.push_back({*number, ""});
    } else {
      return bad_input(fmt::format(
          "--items {}: {} is neither a number above 0 nor a knob; needed such as 32 or "
          "{{batch}}",
          typed, part));
    }
  }
  return made;
}

Result<double> ItemsExpression::value(const Setting& setting) const {
  double product = 1;
  for (const Factor& factor : factors_) {
    if (factor.knob.empty()) {
      product *= factor.number;
      continue;
    }
    const std::optional<std::string> text = value_of(setting, factor.knob);
    const std::optional<double> number = text ? as_number(*text) : std::nullopt;
    if (!number || !(*number > 0)) {
      return bad_input(fmt::format("--items: {{{}}} is {}, which is no number above 0",
                                   factor.knob, text ? *text : "not set"));
    }
    product *= *number;
  }
  return product;
}

}  // namespace halfwatt
