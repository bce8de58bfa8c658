#pragma once

#include <optional>
#include <vector>

#include "base/units.h"

namespace halfwatt {

/// Power as it was sampled, and its integral between any two moments: edges of a window fall
/// between samples.
class SampledPower {
 public:
  /// Takes one more sample, later than the last; nullopt where the device did not tell.
  void add(Seconds now, std::optional<Watts> power);

  /// Whether every sample told the power, and there was one.
  bool is_known() const { return !gap_ && !points_.empty(); }
  /// Straight lines between the samples; before the first and after the last it stays as it is.
  Joules between(Seconds from, Seconds to) const;
  /// Twice the standard error of the mean power between two moments, as a share of it: what the
  /// sum of so many samples can be off where power moves between them. `period`: how often the
  /// sensor shows something new; samples that come faster are the same ones. nullopt for less
  /// than three of them.
  std::optional<double> error(Seconds from, Seconds to, Seconds period) const;

 private:
  struct Point {
    Seconds at;
    Watts power;
  };
  Watts power_at(Seconds time) const;

  std::vector<Point> points_;
  bool gap_ = false;
};

}  // namespace halfwatt
