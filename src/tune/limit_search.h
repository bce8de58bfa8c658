#pragma once

#include <vector>

#include "tune/search.h"

namespace halfwatt {

/// How much a search may measure.
struct SearchBudget {
  int limits = 12;   ///< distinct values
  int windows = 15;  ///< in all, reference and repeats included
};

/// Finds the lowest limits that keep given shares of the top speed, and the one that costs the
/// least energy, in few windows: it closes in on each share with a smooth fit of what it knows
/// until two neighbouring limits hold the crossing between them, looks at the neighbours of the
/// least energy, and then repeats only the limits that decide an unresolved answer.
class LimitSearch final : public Search {
 public:
  /// `keep_percent`: shares of the speed at `reference`, a value of `space`.
  LimitSearch(LimitSpace space,
              double reference,
              std::vector<double> keep_percent,
              SearchBudget budget);
  std::optional<Setting> next(std::span<const Measurement> measured) const override;
  int expected_windows() const override { return static_cast<int>(most_windows()); }

 private:
  std::size_t most_windows() const;
  LimitSpace space_;
  double reference_;
  std::vector<double> keep_percent_;
  SearchBudget budget_;
};

}  // namespace halfwatt
