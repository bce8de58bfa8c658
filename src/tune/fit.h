#pragma once

#include <span>
#include <vector>

namespace halfwatt {

/// One value that a fit takes in: log y at x, with the variance of the log.
struct FitPoint {
  double x = 0;
  double log_y = 0;
  double variance = 0;
};

/// A mean and a standard deviation.
struct Estimate {
  double mean = 0;
  double deviation = 0;
};

/// A smooth curve of log y over x through points with noise, and how sure it is between and
/// beyond them: regression by a Gaussian process (Rasmussen and Williams 2006, section 2.2) on
/// a line that is straight over 1/x^2 plus a Matern 5/2 part, plus a roughness that belongs to
/// each x itself. Without noise it goes through the points exactly; with noise neighbours lend
/// each other their weight.
class Fit {
 public:
  /// `points`: at least one, x positive and distinct.
  explicit Fit(std::span<const FitPoint> points);

  /// log y at `x`.
  Estimate at(double x) const;
  /// log y at `x` minus log y at `other`, whose errors are correlated.
  Estimate difference(double x, double other) const;

 private:
  double straightened(double x) const;
  std::vector<double> covariances(double x) const;
  std::vector<double> solve_lower(std::vector<double> right) const;
  double highest_ = 0;  ///< x
  double level_ = 0;    ///< of log y
  std::vector<double> x_;
  std::vector<double> factor_;  ///< Cholesky factor, row by row
  std::vector<double> weights_;
};

}  // namespace halfwatt
