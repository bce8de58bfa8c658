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

GridSearch::GridSearch(std::vector<GridAxis> axes, std::unique_ptr<Search> of_each)
    : combinations_{Setting{}}, of_each_(std::move(of_each)) {
  for (const GridAxis& axis : axes) {
    std::vector<Setting> longer;
    for (const Setting& each : combinations_) {
      for (const KnobValue& value : axis.values) {
        longer.push_back(with(each, axis.knob.name, value));
      }
    }
    combinations_ = std::move(longer);
  }
}

void GridSearch::leave_out(const Setting& combination) {
  combinations_.erase(std::remove(combinations_.begin(), combinations_.end(), combination),
                      combinations_.end());
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
  const bool lost = std::any_of(own.begin(), own.end(), [](const Measurement& each) {
    return each.numerical_state == NumericalState::dead ||
           std::find(each.notes.begin(), each.notes.end(), WindowNote::does_not_fit) !=
               each.notes.end();
  });
  if (lost) {
    return std::nullopt;
  }
  const std::optional<Setting> wanted = of_each_->next(own);
  if (!wanted) {
    return std::nullopt;
  }
  Setting whole = combination;
  for (const auto& [knob, value] : wanted->values()) {
    whole.set(knob, value);
  }
  return whole;
}

int GridSearch::expected_windows() const {
  return static_cast<int>(combinations_.size()) * of_each_->expected_windows();
}

}  // namespace halfwatt
