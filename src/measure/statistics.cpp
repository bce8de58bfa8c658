#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace halfwatt {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

double middle(const std::vector<double>& ordered) {
  const std::size_t half = ordered.size() / 2;
  return ordered.size() % 2 == 1 ? ordered[half]
                                 : std::midpoint(ordered[half - 1], ordered[half]);
}

// The largest k such that P(Binomial(n, 1/2) < k) <= 2.5 %: the k-th smallest and k-th largest
// of n values then hold the median in at least 95 %. 0 if none does.
std::size_t lower_rank(std::size_t n) {
  constexpr double kTail = 0.025;
  const double count = static_cast<double>(n);
  if (n > 1000) {  // 2^-n leaves the range of a double, and the normal approximation is exact
                   // enough
    return static_cast<std::size_t>(count / 2 - 0.98 * std::sqrt(count));
  }
  double term = std::exp(-count * std::log(2.0));  // P(X = 0)
  double below = 0;
  std::size_t rank = 0;
  for (std::size_t k = 0; k < n; ++k) {
    below += term;
    if (below > kTail) {
      break;
    }
    rank = k + 1;
    term *= (count - static_cast<double>(k)) / static_cast<double>(k + 1);
  }
  return rank;
}

}  // namespace

double median(std::span<const double> values) {
  HALFWATT_CHECK(!values.empty(), "median of nothing");
  return middle(sorted(values));
}

double quantile(std::span<const double> values, double share) {
  HALFWATT_CHECK(!values.empty(), "quantile of nothing");
  const std::vector<double> ordered = sorted(values);
  const double place = share * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return std::lerp(ordered[below], ordered[above], place - std::floor(place));
}

MedianInterval median_interval(std::span<const double> values) {
  HALFWATT_CHECK(!values.empty(), "median of nothing");
  const std::vector<double> ordered = sorted(values);
  MedianInterval interval{middle(ordered), std::nullopt, std::nullopt};
  if (const std::size_t rank = lower_rank(ordered.size()); rank > 0) {
    interval.low = ordered[rank - 1];
    interval.high = ordered[ordered.size() - rank];
  }
  return interval;
}

double robust_deviation(std::span<const double> values, double centre) {
  if (values.empty()) {
    return 0;
  }
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - centre));
  }
  constexpr double kNormalDeviationPerMad = 1.4826;  // 1 / quantile 3/4 of the standard normal
  return kNormalDeviationPerMad * median(distances);
}

}  // namespace halfwatt
