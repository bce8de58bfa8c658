#pragma once

#include <optional>
#include <vector>

#include "measure/series.h"

namespace halfwatt {

/// Which limit's speed is 100 %.
enum class Reference {
  top,     ///< the highest measured limit
  preset,  ///< the limit the vendor ships, or the nearest measured one
  peak,    ///< the limit with the highest speed
};

/// Relative deviation of one window before repeats say better, worth `kAssumedNoiseRepeats`
/// repeat: quiet cards repeat to 0.1 to 0.2 %.
inline constexpr double kAssumedNoise = 0.0015;
inline constexpr double kAssumedNoiseRepeats = 1;

/// All windows at one value of the knob, taken together.
struct CurvePoint {
  double x = 0;       ///< watts, or the knob's unit
  Seconds step_time;  ///< median over the windows, drift taken out
  double items_per_second = 0;
  std::optional<double> low;  ///< 95 % interval of items_per_second
  std::optional<double> high;
  int windows = 0;
  std::optional<double> joules_per_item;
  std::optional<Watts> draw;  ///< mean power
};

/// A series as speed against the knob, ready to be judged.
struct Curve {
  std::vector<CurvePoint> points;  ///< ascending x; windows that must not count are left out
  std::size_t reference = 0;       ///< index of the 100 % point
  /// Relative deviation of one window's step time, from repeats; nullopt where nothing was
  /// repeated, so that nothing is known about it.
  std::optional<double> noise;
  /// The limit above which the card draws no more, told by the draw at the top and at limits
  /// that bind; absent where no draw is known or the cap binds everywhere.
  std::optional<double> demand;
  double drift = 0;  ///< relative change of step time over the series, taken out
  /// Above it the cap does not bind, so that limit times time counts no further; absent where
  /// no plateau was found.
  std::optional<double> binding_limit;
  int cards = 1;  ///< each has the limit, so that limit times time is of one
  int windows = 0;
  int rejected = 0;  ///< windows left out

  bool empty() const { return points.empty(); }
  /// Where a fit should see x: above the demand, limits hardly differ.
  double effective(double x) const {
    constexpr double kBeyondDemand = 0.1;  // recorded curves are not quite flat there
    return demand && x > *demand ? *demand + kBeyondDemand * (x - *demand) : x;
  }
  /// Whether repeats agree to all digits that count, as of a recording played back: one more
  /// would tell nothing.
  bool repeats_exactly() const {
    constexpr double kExact = 1e-6;
    return noise && *noise < kExact;
  }
  /// What each card draws of its limit at a point; nullopt where no draw is known.
  std::optional<double> drawn_share(const CurvePoint& point) const {
    return point.draw ? std::optional(point.draw->value() / (point.x * cards)) : std::nullopt;
  }
  double share(std::size_t i) const {
    return points[i].items_per_second / points[reference].items_per_second;
  }
};

/// How much of its limit a card shows where the cap binds: its meters may be off by some
/// percent, but all its points by the same. 0 where no draw is known.
double binding_ratio(const Curve& curve);

/// Joins the windows of `series`. Slow drift is a straight line through the repeats of the
/// reference limit (Theil and Sen's slope: one odd window does not tilt it).
Curve build_curve(const Series& series, Reference reference);

}  // namespace halfwatt
