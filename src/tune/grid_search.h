#pragma once

#include <string>
#include <vector>

#include "tune/search.h"

namespace halfwatt {

/// One axis of a grid whose values cost a restart of the workload.
struct GridAxis {
  Knob knob;
  std::vector<KnobValue> values;
};

/// Every combination of the values of several knobs with every power limit. Restarts are few:
/// all limits of one combination are measured before the next one begins, in interleaved order
/// with the highest first, as every fifth window, and last, so that drift shows within each
/// combination. A combination that does not fit is left after its first window.
class GridSearch final : public Search {
 public:
  /// `limits` may be empty, where the power limit is left alone: then every combination is
  /// measured `repeats` times. No axis is empty.
  GridSearch(std::vector<GridAxis> axes, std::vector<double> limits, int repeats);
  std::optional<Setting> next(std::span<const Measurement> measured) const override;
  int expected_windows() const override;
  /// How often the workload is started.
  std::size_t combinations() const { return combinations_.size(); }

 private:
  std::optional<Setting> next_of(const Setting& combination,
                                 std::span<const Measurement> measured) const;

  std::vector<Setting> combinations_;
  std::vector<double> limits_;
  int repeats_;
};

}  // namespace halfwatt
