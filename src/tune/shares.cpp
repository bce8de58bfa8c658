#include "tune/shares.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace halfwatt {
namespace {
constexpr double kNinetyFivePercent = 1.96;  // two-sided, standard normal
constexpr double kScanStep = 0.25;           // of x: watts
}  // namespace

std::vector<FitPoint> step_time_points(const Curve& curve) {
  std::vector<FitPoint> points;
  const double noise = curve.noise.value_or(0);
  for (const CurvePoint& point : curve.points) {
    points.push_back(
        {point.x, std::log(point.step_time.value()), noise * noise / point.windows});
  }
  return points;
}

Shares::Shares(const Curve& curve) : curve_(&curve) {
  HALFWATT_CHECK(!curve.empty(), "shares of an empty curve");
  if (curve.noise && curve.points.front().x > 0) {
    fit_.emplace(step_time_points(curve));
  }
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    log_shares_.push_back(fit_ ? log_share_at(curve.points[i].x).mean
                               : std::log(curve.share(i)));
  }
}

Estimate Shares::log_share_at(double x) const {
  const Estimate step = fit_->difference(x, curve_->points[curve_->reference].x);
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
    double x = x_high - kScanStep;
    while (x > x_low && log_share_at(x).mean >= target) {
      x -= kScanStep;
    }
    return x > x_low ? x + kScanStep / 2 : x_low;
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
  while (low > curve_->points.front().x && holds_target(low - kScanStep)) {
    low -= kScanStep;
  }
  double high = crossing;
  while (high < curve_->points.back().x && holds_target(high + kScanStep)) {
    high += kScanStep;
  }
  return {std::max(low, curve_->points.front().x), std::min(high, curve_->points.back().x)};
}

KeepVerdict Shares::keep(double percent, double resolution) const {
  KeepVerdict verdict;
  verdict.percent = percent;
  // A share that is reached to the last digits of a double is reached.
  const double target = std::log(percent / 100) - 1e-12;
  const std::size_t lowest = lowest_of_upper_run(target);
  if (lowest == log_shares_.size()) {
    return verdict;
  }
  const auto& points = curve_->points;
  verdict.limit = points[lowest].x;
  verdict.reached_percent = 100 * std::exp(log_shares_[lowest]);
  if (lowest == 0) {
    verdict.at_floor = true;
    verdict.interpolated = points[0].x;
    verdict.interval = {points[0].x, points[0].x};
    verdict.resolvable = true;
    return verdict;
  }
  for (std::size_t i = 0; i < lowest; ++i) {
    if (log_shares_[i] >= target) {
      verdict.lower_limit = points[i].x;
      break;
    }
  }
  const double crossing = crossing_between(lowest - 1, lowest, target);
  verdict.interpolated = crossing;
  if (fit_) {
    verdict.interval = interval_of_fit(crossing, target);
    // The limit right above the crossing is then at most one step of the grid away.
    verdict.resolvable = verdict.interval->first > *verdict.limit - 2 * resolution &&
                         verdict.interval->second <= *verdict.limit + resolution;
  } else {
    const double lower = verdict.lower_limit ? *verdict.lower_limit : points[lowest - 1].x;
    verdict.interval = {lower, points[lowest].x};
    verdict.resolvable = !verdict.lower_limit;
  }
  return verdict;
}

}  // namespace halfwatt
