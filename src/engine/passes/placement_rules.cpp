#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/passes/placement.h"

namespace halfwatt {
namespace {

std::vector<DType> dtypes_called(std::string_view word) {
  static const std::array<std::pair<std::string_view, std::vector<DType>>, 7> kWords = {{
      {"fp64", {DType::f64}},
      {"fp32", {DType::f32}},
      {"tf32", {DType::tf32}},
      {"fp16", {DType::f16}},
      {"bf16", {DType::bf16}},
      {"fp8", {DType::e4m3, DType::e5m2}},
      {"16bit", {DType::f16, DType::bf16}},
  }};
  for (const auto& [name, dtypes] : kWords) {
    if (name == word) {
      return dtypes;
    }
  }
  return {};
}

// Of the next part: up to a comma that is not within a set of letters.
std::size_t part_end(std::string_view text) {
  bool in_set = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    in_set = text[at] == '[' || (in_set && text[at] != ']');
    if (text[at] == ',' && !in_set) {
      return at;
    }
  }
  return text.size();
}

}  // namespace

Result<std::vector<PlacementRule>> placement_rules(std::string_view text) {
  std::vector<PlacementRule> rules;
  std::string_view rest = text;
  while (true) {
    const std::size_t end = part_end(rest);
    const std::string_view part = rest.substr(0, end);
    const std::size_t equals = part.rfind('=');
    if (equals == part.npos || equals == 0 || equals + 1 == part.size()) {
      return bad_input(fmt::format(
          "--place {}: needs WHAT=DEVICE, as in 'blocks.[0-5].*=cpu:0' or 16bit=cpu:1", text));
    }
    const std::string_view what = part.substr(0, equals);
    rules.push_back(
        {std::string(what), dtypes_called(what), std::string(part.substr(equals + 1))});
    if (end == rest.size()) {
      return rules;
    }
    rest = rest.substr(end + 1);
  }
}

}  // namespace halfwatt
