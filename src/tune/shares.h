#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tune/curve.h"
#include "tune/fit.h"

namespace halfwatt {

/// The answer for one share of the reference speed.
struct KeepVerdict {
  double percent = 0;
  std::optional<double>
      limit;  ///< the lowest measured one such that it and all higher reach it
  std::optional<double> interpolated;  ///< where the curve crosses the share, below `limit`
  std::optional<std::pair<double, double>> interval;  ///< that holds the crossing
  double reached_percent = 0;                         ///< at `limit`
  bool resolvable = false;  ///< the interval is narrow enough to mean something
  std::optional<double>
      lower_limit;        ///< the curve is not monotone: this lower one reaches it too
  bool at_floor = false;  ///< even the lowest measured limit reaches it
};

/// Reads shares off a curve. Where windows were repeated, so that their noise is known, values
/// are smoothed by a Fit first; otherwise they are taken as they were measured.
class Shares {
 public:
  /// `curve` outlives the object and is not empty.
  explicit Shares(const Curve& curve);

  /// Log of speed over reference speed at the i-th point of the curve.
  double log_share(std::size_t i) const { return log_shares_[i]; }
  /// The same anywhere, with its uncertainty; only with a fit.
  Estimate log_share_at(double x) const;

  /// `step`: between the limits that were open to choice; an answer is then resolvable if, at
  /// 95 %, it is off by one step at most. Without it the measured limits are the choice.
  KeepVerdict keep(double percent, std::optional<double> step) const;

 private:
  std::size_t lowest_of_upper_run(double target) const;
  bool is_resolvable(const KeepVerdict& verdict,
                     std::size_t lowest,
                     double target,
                     std::optional<double> step) const;
  bool lost_in_descents(std::size_t lowest, double target) const;
  double crossing_between(std::size_t low, std::size_t high, double target) const;
  std::pair<double, double> interval_of_fit(double crossing, double target) const;

  const Curve* curve_;
  std::optional<Fit> fit_;
  std::vector<double> log_shares_;
  double scan_step_ = 1;  ///< of x, to find where the fit crosses a share
};

/// Points of a fit of log step time over x; `variance` of one window divided by its repeats.
std::vector<FitPoint> step_time_points(const Curve& curve);

}  // namespace halfwatt
