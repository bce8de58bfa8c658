#include "tune/shape.h"

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"

namespace halfwatt {
namespace {

constexpr double kSameSpeed = 0.005;
constexpr double kPlateauShare = 0.08;
constexpr double kUndrawn = 0.03;
constexpr double kOutlier = 0.005;
constexpr double kOutlierDeviations = 4;
constexpr double kSmoothShare = 0.75;

// Log step time at i against the line between its neighbours, drawn over 1/x^2, where curves of
// speed against a power limit are almost straight.
double off_neighbours(const Curve& curve, std::size_t i) {
  const auto& points = curve.points;
  const auto log_time = [&](std::size_t k) { return std::log(points[k].step_time.value()); };
  const auto at = [&](std::size_t k) { return 1 / (points[k].x * points[k].x); };
  const double share = (at(i) - at(i - 1)) / (at(i + 1) - at(i - 1));
  return log_time(i) - (log_time(i - 1) + share * (log_time(i + 1) - log_time(i - 1)));
}

}  // namespace

std::optional<Plateau> find_plateau(const Curve& curve, bool x_is_watts) {
  const auto& points = curve.points;
  if (points.size() < 3) {
    return std::nullopt;
  }
  const auto long_enough = [&points](std::size_t first) {
    return points.size() - first >= 3 &&
           points.back().x - points[first].x >= kPlateauShare * points.back().x;
  };
  if (x_is_watts) {
    const double bound = std::min(binding_ratio(curve), 1.0) * (1 - kUndrawn);
    std::size_t first = points.size();
    while (first > 0 && curve.drawn_share(points[first - 1]).value_or(bound) < bound) {
      --first;
    }
    if (first < points.size() && long_enough(first)) {
      return Plateau{points[first].x, points.back().x, true};
    }
  }
  double low = points.back().items_per_second;
  double high = low;
  std::size_t first = points.size() - 1;
  while (first > 0) {
    const double next = points[first - 1].items_per_second;
    if (std::max(high, next) > std::min(low, next) * (1 + kSameSpeed)) {
      break;
    }
    low = std::min(low, next);
    high = std::max(high, next);
    --first;
  }
  if (long_enough(first)) {
    return Plateau{points[first].x, points.back().x, false};
  }
  return std::nullopt;
}

std::vector<Outlier> find_outliers(const Curve& curve) {
  std::vector<Outlier> outliers;
  // Near the floor a card changes its ways from limit to limit: real bends, not odd windows.
  std::size_t first = 0;
  while (first < curve.points.size() &&
         (curve.points[first].x <= 0 || curve.share(first) < kSmoothShare)) {
    ++first;
  }
  std::vector<double> off;
  for (std::size_t i = first + 1; i + 1 < curve.points.size(); ++i) {
    off.push_back(off_neighbours(curve, i));
  }
  if (off.size() < 3) {
    return outliers;
  }
  const double usual = robust_deviation(off, median(off));
  for (std::size_t i = 0; i < off.size(); ++i) {
    // One odd point also bends the lines of both its neighbours, by half and the other way.
    const double left = i > 0 ? off[i - 1] : 0;
    const double right = i + 1 < off.size() ? off[i + 1] : 0;
    const bool stands_out = off[i] * left <= 0 && off[i] * right <= 0 &&
                            std::abs(off[i]) > std::max(std::abs(left), std::abs(right));
    if (stands_out && std::abs(off[i]) > std::max(kOutlier, kOutlierDeviations * usual)) {
      outliers.push_back({curve.points[first + i + 1].x, 100 * std::expm1(off[i])});
    }
  }
  return outliers;
}

std::vector<Descent> find_descents(const Curve& curve) {
  std::vector<Descent> descents;
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    const double ratio =
        curve.points[i].items_per_second / curve.points[i - 1].items_per_second;
    if (ratio < 1 - kSameSpeed) {
      descents.push_back({curve.points[i - 1].x, curve.points[i].x, 100 * (1 - ratio)});
    }
  }
  std::stable_sort(descents.begin(), descents.end(),
                   [](const Descent& a, const Descent& b) { return a.percent > b.percent; });
  return descents;
}

std::optional<double> find_knee(const Curve& curve) {
  const auto& points = curve.points;
  if (points.size() < 3) {
    return std::nullopt;
  }
  const double width = points.back().x - points.front().x;
  const double height = points.back().items_per_second - points.front().items_per_second;
  if (width <= 0 || height <= 0) {
    return std::nullopt;
  }
  const auto above_chord = [&](const CurvePoint& point) {
    return (point.items_per_second - points.front().items_per_second) / height -
           (point.x - points.front().x) / width;
  };
  return std::max_element(
             points.begin(), points.end(),
             [&](const auto& a, const auto& b) { return above_chord(a) < above_chord(b); })
      ->x;
}

}  // namespace halfwatt
