#include "tune/shares.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace halfwatt {
namespace {
constexpr double kNinetyFivePercent = 1.96;  // two-sided, standard normal
constexpr double kSameSpeed = 0.005;
constexpr double kCommonFalls =
    0.05;  // of neighbouring pairs: one odd row in twenty is an outlier
constexpr double kScansPerGap = 40;  // of the smallest gap between two limits
constexpr double kMostScans = 4000;  // over the whole range
}  // namespace

std::vector<FitPoint> step_time_points(const Curve& curve) {
  std::vector<FitPoint> points;
  const double noise = curve.noise.value_or(0);
  for (const CurvePoint& point : curve.points) {
    points.push_back({curve.effective(point.x), std::log(point.step_time.value()),
                      noise * noise / point.windows});
  }
  return points;
}

Shares::Shares(const Curve& curve) : curve_(&curve) {
  HALFWATT_CHECK(!curve.empty(), "shares of an empty curve");
  if (curve.noise && curve.points.front().x > 0) {
    fit_.emplace(step_time_points(curve));
  }
  const double range = curve.points.back().x - curve.points.front().x;
  double smallest = range;
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    smallest = std::min(smallest, curve.points[i].x - curve.points[i - 1].x);
  }
  scan_step_ = std::max(smallest / kScansPerGap, range / kMostScans);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    log_shares_.push_back(fit_ ? log_share_at(curve.points[i].x).mean
                               : std::log(curve.share(i)));
  }
}

Estimate Shares::log_share_at(double x) const {
  const Estimate step = fit_->difference(
      curve_->effective(x), curve_->effective(curve_->points[curve_->reference].x));
  return {-step.mean, step.deviation};
}

// Index of the lowest point such that it and all higher ones reach the target; the number of
// points if not even the highest does.
std::size_t Shares::lowest_of_upper_run(double target) const {
  std::size_t i = log_shares_.size();
  while (i > 0 && log_shares_[i - 1] >= target) {
    --i;
  }
  return i;
}

double Shares::crossing_between(std::size_t low, std::size_t high, double target) const {
  const double x_low = curve_->points[low].x;
  const double x_high = curve_->points[high].x;
  if (fit_) {
    double x = x_high - scan_step_;
    while (x > x_low && log_share_at(x).mean >= target) {
      x -= scan_step_;
    }
    return x > x_low ? x + scan_step_ / 2 : x_low;
  }
  const double below = curve_->share(low);
  const double above = curve_->share(high);
  return x_low + (x_high - x_low) * (std::exp(target) - below) / (above - below);
}

// All x whose 95 % band holds the target, around the crossing, within what was measured.
std::pair<double, double> Shares::interval_of_fit(double crossing, double target) const {
  const auto holds_target = [&](double x) {
    const Estimate share = log_share_at(x);
    return std::abs(share.mean - target) <= kNinetyFivePercent * share.deviation;
  };
  double low = crossing;
  while (low > curve_->points.front().x && holds_target(low - scan_step_)) {
    low -= scan_step_;
  }
  double high = crossing;
  while (high < curve_->points.back().x && holds_target(high + scan_step_)) {
    high += scan_step_;
  }
  return {std::max(low, curve_->points.front().x), std::min(high, curve_->points.back().x)};
}

KeepVerdict Shares::keep(double percent, std::optional<double> step) const {
  KeepVerdict verdict;
  verdict.percent = percent;
  // A share that is reached to the last digits of a double is reached.
  const double target = std::log(percent / 100) - 1e-12;
  const std::size_t lowest = lowest_of_upper_run(target);
  if (lowest == log_shares_.size() || log_shares_.size() == 1) {
    return verdict;
  }
  const auto& points = curve_->points;
  verdict.limit = points[lowest].x;
  verdict.reached_percent = 100 * std::exp(log_shares_[lowest]);
  if (lowest == 0) {
    verdict.at_floor = true;
    verdict.interpolated = points[0].x;
    verdict.interval = {points[0].x, points[0].x};
    verdict.resolvable = fit_ || !lost_in_descents(lowest, target);
    return verdict;
  }
  for (std::size_t i = 0; i < lowest; ++i) {
    if (log_shares_[i] >= target) {
      verdict.lower_limit = points[i].x;
      break;
    }
  }
  verdict.interpolated = crossing_between(lowest - 1, lowest, target);
  verdict.interval =
      fit_ ? interval_of_fit(*verdict.interpolated, target)
           : std::pair(verdict.lower_limit.value_or(points[lowest - 1].x), points[lowest].x);
  verdict.resolvable = is_resolvable(verdict, lowest, target, step);
  return verdict;
}

bool Shares::is_resolvable(const KeepVerdict& verdict,
                           std::size_t lowest,
                           double target,
                           std::optional<double> step) const {
  const auto& points = curve_->points;
  const auto [low, high] = *verdict.interval;
  if (!fit_ && (verdict.lower_limit || lost_in_descents(lowest, target))) {
    return false;
  }
  if (step) {
    // The limit right above the crossing is then at most one step away.
    return low > *verdict.limit - 2 * *step && high <= *verdict.limit + *step;
  }
  if (!fit_) {
    return true;
  }
  const double below = lowest >= 2 ? points[lowest - 2].x : points.front().x - 1;
  const double above = lowest + 1 < points.size() ? points[lowest + 1].x : points.back().x;
  return low > below && high <= above;
}

// Whether figures that were measured once fall by more than what decides the answer: anywhere,
// where falls are common and so tell the noise, or else right beside it.
bool Shares::lost_in_descents(std::size_t lowest, double target) const {
  const double above = log_shares_[lowest] - target;
  const double margin = lowest == 0 ? above : std::min(above, target - log_shares_[lowest - 1]);
  double largest = 0;
  double largest_near = 0;
  double falls = 0;
  for (std::size_t i = 0; i + 1 < log_shares_.size(); ++i) {
    const double fall = log_shares_[i] - log_shares_[i + 1];
    if (fall <= kSameSpeed) {
      continue;
    }
    falls += 1;
    largest = std::max(largest, fall);
    if (i + 2 >= lowest && i <= lowest) {
      largest_near = std::max(largest_near, fall);
    }
  }
  const bool common = falls > kCommonFalls * static_cast<double>(log_shares_.size() - 1);
  return (common ? largest : largest_near) > margin && falls > 0;
}

}  // namespace halfwatt
