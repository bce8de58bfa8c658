#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tune/search.h"

namespace halfwatt {

/// One axis of a grid whose values cost a restart of the workload.
struct GridAxis {
  Knob knob;
  std::vector<KnobValue> values;
};

/// Every combination of the values of several knobs, and within each a search of its own, such
/// as one over power limits. Restarts are few: a combination is finished before the next one
/// begins. One that does not fit, or whose
/// network is dead, is left after the window that said so.
class GridSearch final : public Search {
 public:
  /// `of_each`: sees the windows of one combination only. No axis is empty; without axes there
  /// is one combination.
  GridSearch(std::vector<GridAxis> axes, std::unique_ptr<Search> of_each);
  /// Takes one of settings() out of them, as what cannot be measured.
  void leave_out(const Setting& combination);
  std::optional<Setting> next(std::span<const Measurement> measured) const override;
  int expected_windows() const override;
  /// How often the workload is started.
  std::size_t combinations() const { return combinations_.size(); }
  /// The combinations themselves, in order.
  const std::vector<Setting>& settings() const { return combinations_; }

 private:
  std::optional<Setting> next_of(const Setting& combination,
                                 std::span<const Measurement> measured) const;

  std::vector<Setting> combinations_;
  std::unique_ptr<Search> of_each_;
};

}  // namespace halfwatt
