#include "tune/fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace halfwatt {
namespace {

// Prior of log time and log energy over u = (highest x / x)^2. In u the recorded curves of
// speed against a power limit are almost straight, where over x they fall off a cliff at the
// floor and are flat at the top.
constexpr double kLevel = 3;   // deviation of the level of log y
constexpr double kSlope = 1;   // of its slope
constexpr double kBend = 0.3;  // of the smooth part
constexpr double kLength = 4;  // over which it bends, in units of u
constexpr double kRoughness =
    0.0012;  // about what a curve of the study is off its own smooth shape

double kernel(double a, double b) {
  const double distance = std::sqrt(5.0) * std::abs(a - b) / kLength;
  const double matern = (1 + distance + distance * distance / 3) * std::exp(-distance);
  return kLevel * kLevel + kSlope * kSlope * a * b + kBend * kBend * matern +
         (a == b ? kRoughness * kRoughness : 0.0);
}

}  // namespace

Fit::Fit(std::span<const FitPoint> points) {
  HALFWATT_CHECK(!points.empty(), "a fit needs a point");
  const std::size_t n = points.size();
  for (const FitPoint& point : points) {
    highest_ = std::max(highest_, point.x);
    level_ += point.log_y / static_cast<double>(n);
  }
  for (const FitPoint& point : points) {
    x_.push_back(straightened(point.x));
  }
  factor_.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = kernel(x_[i], x_[j]) + (i == j ? points[i].variance : 0.0);
      for (std::size_t k = 0; k < j; ++k) {
        sum -= factor_[i * n + k] * factor_[j * n + k];
      }
      factor_[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-18)) : sum / factor_[j * n + j];
    }
  }
  std::vector<double> right(n);
  for (std::size_t i = 0; i < n; ++i) {
    right[i] = points[i].log_y - level_;
  }
  weights_ = solve_lower(std::move(right));
}

double Fit::straightened(double x) const { return highest_ * highest_ / (x * x) - 1; }

std::vector<double> Fit::solve_lower(std::vector<double> right) const {
  const std::size_t n = x_.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      right[i] -= factor_[i * n + k] * right[k];
    }
    right[i] /= factor_[i * n + i];
  }
  return right;
}

std::vector<double> Fit::covariances(double x) const {
  std::vector<double> column;
  column.reserve(x_.size());
  for (const double known : x_) {
    column.push_back(kernel(x, known));
  }
  return solve_lower(std::move(column));
}

Estimate Fit::at(double x) const {
  const double at = straightened(x);
  const std::vector<double> column = covariances(at);
  Estimate estimate{level_, 0};
  double variance = kernel(at, at);
  for (std::size_t i = 0; i < column.size(); ++i) {
    estimate.mean += column[i] * weights_[i];
    variance -= column[i] * column[i];
  }
  estimate.deviation = std::sqrt(std::max(variance, 0.0));
  return estimate;
}

Estimate Fit::difference(double x, double other) const {
  const double a = straightened(x);
  const double b = straightened(other);
  const std::vector<double> column_a = covariances(a);
  const std::vector<double> column_b = covariances(b);
  Estimate estimate;
  double variance = kernel(a, a) + kernel(b, b) - 2 * kernel(a, b);
  for (std::size_t i = 0; i < column_a.size(); ++i) {
    const double column = column_a[i] - column_b[i];
    estimate.mean += column * weights_[i];
    variance -= column * column;
  }
  estimate.deviation = std::sqrt(std::max(variance, 0.0));
  return estimate;
}

}  // namespace halfwatt
