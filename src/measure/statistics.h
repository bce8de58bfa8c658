#pragma once

#include <optional>
#include <span>
#include <vector>

namespace halfwatt {

/// A median and the interval that holds the true one.
struct MedianInterval {
  double median = 0;
  std::optional<double> low;  ///< absent where so few values can prove no 95 % interval
  std::optional<double> high;
};

/// The median of `values` (not empty).
double median(std::span<const double> values);

/// The value below which `share` (0 to 1) of `values` (not empty) lie, between the two nearest
/// ones where it falls between them.
double quantile(std::span<const double> values, double share);

/// The median of `values` (not empty) with its 95 % interval by order statistics: the ranks
/// whose binomial coverage is at least 95 %. Exact for every continuous distribution and free
/// of random numbers, so that reading a record twice gives the same bytes; a bootstrap is
/// neither. Needs 6 values: the interval from the least to the greatest of 5 holds the median
/// in only 93.75 %.
MedianInterval median_interval(std::span<const double> values);

/// Standard deviation about `centre`, estimated from the median absolute deviation, so that one
/// outlier does not move it; 0 for an empty span.
double robust_deviation(std::span<const double> values, double centre);

}  // namespace halfwatt
