#include "tune/grid_search.h"

#include <algorithm>

namespace halfwatt {
namespace {

Setting with(Setting setting, const std::string& knob, const KnobValue& value) {
  setting.set(knob, value);
  return setting;
}

// Whether `setting` has all values of `combination`, whatever else it has.
bool is_of(const Setting& combination, const Setting& setting) {
  const auto& all = setting.values();
  return std::all_of(combination.values().begin(), combination.values().end(),
                     [&all](const auto& value) {
                       return std::find(all.begin(), all.end(), value) != all.end();
                     });
}

}  // namespace

GridSearch::GridSearch(std::vector<GridAxis> axes, std::vector<double> limits, int repeats)
    : combinations_{Setting{}}, limits_(std::move(limits)), repeats_(repeats) {
  for (const GridAxis& axis : axes) {
    std::vector<Setting> longer;
    for (const Setting& each : combinations_) {
      for (const KnobValue& value : axis.values) {
        longer.push_back(with(each, axis.knob.name, value));
      }
    }
    combinations_ = std::move(longer);
  }
  std::sort(limits_.rbegin(), limits_.rend());
}

std::optional<Setting> GridSearch::next(std::span<const Measurement> measured) const {
  for (const Setting& combination : combinations_) {
    if (auto wanted = next_of(combination, measured)) {
      return wanted;
    }
  }
  return std::nullopt;
}

std::optional<Setting> GridSearch::next_of(const Setting& combination,
                                           std::span<const Measurement> measured) const {
  std::vector<Measurement> own;
  for (const Measurement& each : measured) {
    if (is_of(combination, each.setting)) {
      own.push_back(each);
    }
  }
  const bool fits = std::none_of(own.begin(), own.end(), [](const Measurement& each) {
    return std::find(each.notes.begin(), each.notes.end(), WindowNote::does_not_fit) !=
           each.notes.end();
  });
  if (!fits) {
    return std::nullopt;
  }
  if (limits_.empty()) {
    const auto done = std::count_if(own.begin(), own.end(),
                                    [](const Measurement& each) { return each.settled(); });
    return done < repeats_ ? std::optional(combination) : std::nullopt;
  }
  const Knob limit = power_limit_knob();
  const ReferencedSearch limits(
      limit, limits_.front(),
      std::make_unique<ListSearch>(limit, limits_, repeats_, /*interleaved=*/true));
  const std::optional<Setting> wanted = limits.next(own);
  return wanted ? std::optional(with(combination, limit.name, *wanted->number(limit.name)))
                : std::nullopt;
}

int GridSearch::expected_windows() const {
  const int combinations = static_cast<int>(combinations_.size());
  if (limits_.empty()) {
    return combinations * repeats_;
  }
  const Knob limit = power_limit_knob();
  return combinations *
         ReferencedSearch(limit, limits_.front(),
                          std::make_unique<ListSearch>(limit, limits_, repeats_, true))
             .expected_windows();
}

}  // namespace halfwatt
