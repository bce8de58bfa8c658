#include "cli/model_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/remark.h"
#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

constexpr double kMostClasses = 1e6;

// "fp32,amp-bf16"; the triples of `param=,compute=,output=` have commas of their own.
std::vector<std::string> split_precisions(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string word(list.substr(0, comma));
    list = comma == list.npos ? "" : list.substr(comma + 1);
    const bool goes_on = word.find('=') != word.npos && !word.starts_with("param=") &&
                         !words.empty() && words.back().starts_with("param=");
    if (goes_on) {
      words.back() += "," + word;
    } else {
      words.push_back(word);
    }
  }
  return words;
}

Result<Precision> precision_called(const std::string& name) {
  auto precision = precision_named(name);
  return precision ? precision
                   : bad_input(fmt::format("--precision: {}", precision.error().message));
}

}  // namespace

Option precision_option() {
  // Options are views of text that stays.
  static const std::string help =
      precision_names() + "; fp32 is the default, docs/commands.md says what each is";
  return {"--precision", "MODE", help};
}

Result<VitConfig> model_asked(const Invocation& invocation, const std::string& otherwise) {
  const std::string name = invocation.get("--model").value_or(otherwise);
  if (name.empty()) {
    return bad_input("--model NAME is missing, as in --model vit_tiny_patch16_224");
  }
  auto model = vit_named(name);
  if (!model) {
    return bad_input(fmt::format("--model: {}", model.error().message));
  }
  const auto classes =
      invocation.whole("--classes", static_cast<double>(model->classes), 1, kMostClasses);
  if (!classes) {
    return classes.error();
  }
  const std::string pool = invocation.get("--pool").value_or("token");
  if (pool != "token" && pool != "mean") {
    return bad_input(fmt::format("--pool {}: needed token or mean", pool));
  }
  model->classes = static_cast<std::int64_t>(*classes);
  model->pool = pool == "mean" ? VitConfig::Pool::mean : VitConfig::Pool::token;
  return model;
}

Result<Precision> precision_asked(const Invocation& invocation) {
  return precision_called(invocation.get("--precision").value_or("fp32"));
}

Result<std::vector<Precision>> precisions_asked(const Invocation& invocation) {
  std::vector<Precision> all;
  for (const std::string& name :
       split_precisions(invocation.get("--precision").value_or("fp32"))) {
    auto precision = precision_called(name);
    if (!precision) {
      return precision.error();
    }
    if (std::none_of(all.begin(), all.end(),
                     [&](const Precision& each) { return each.name == precision->name; })) {
      all.push_back(std::move(*precision));
    }
  }
  if (all.empty()) {
    return bad_input("--precision: names none; needed a list as in fp32,amp-bf16");
  }
  return all;
}

Result<std::vector<PrecisionOverride>> overrides_asked(const Invocation& invocation) {
  std::vector<PrecisionOverride> all;
  for (const std::string& text : invocation.all("--override")) {
    auto override = precision_override(text);
    if (!override) {
      return override.error();
    }
    all.push_back(std::move(*override));
  }
  return all;
}

void tell_numbers(const std::string& path,
                  const WeightsReport& report,
                  const Precision& precision) {
  if (report.not_finite > 0) {
    remark(fmt::format("{}: {} numbers are not finite, the first in {}", shown(path),
                       report.not_finite, report.first_not_finite));
  }
  if (report.overflowed > 0) {
    remark(fmt::format("{}: {} numbers are too large for {}, the first in {}", shown(path),
                       report.overflowed, precision.name, report.first_overflowed));
  }
}

}  // namespace halfwatt
