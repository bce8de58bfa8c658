#include "tune/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"

namespace halfwatt {
namespace {

// Log step time of a card whose speed falls off towards its floor.
double truth(double x) { return 0.1 * (480 / x) * (480 / x) + 0.02 * std::log(x); }

std::vector<FitPoint> sampled(std::initializer_list<double> limits,
                              double deviation,
                              Rng& rng) {
  std::vector<FitPoint> points;
  for (const double x : limits) {
    points.push_back({x, truth(x) + deviation * rng.normal(), deviation * deviation});
  }
  return points;
}

TEST(Fit, goes_through_points_without_noise) {
  Rng rng(1);
  const std::vector<FitPoint> points = sampled({200, 260, 310, 400, 480}, 0, rng);
  const Fit fit(points);
  for (const FitPoint& point : points) {
    EXPECT_NEAR(fit.at(point.x).mean, point.log_y, 1e-6);
    EXPECT_LT(fit.at(point.x).deviation, 1e-4);
  }
}

TEST(Fit, foretells_a_smooth_curve_between_its_points) {
  Rng rng(1);
  const Fit fit(sampled({200, 260, 310, 400, 480}, 0, rng));
  for (double x = 200; x <= 480; x += 10) {
    EXPECT_NEAR(fit.at(x).mean, truth(x), 0.002) << x;
  }
}

TEST(Fit, is_less_sure_far_from_its_points) {
  Rng rng(1);
  const Fit fit(sampled({300, 400, 480}, 0, rng));
  EXPECT_GT(fit.at(200).deviation, 5 * fit.at(350).deviation);
}

TEST(Fit, lets_neighbours_lend_each_other_their_weight) {
  Rng rng(3);
  double alone = 0;
  double together = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<FitPoint> points =
        sampled({280, 300, 320, 340, 360, 380, 400, 480}, 0.005, rng);
    const double fitted = Fit(points).at(340).mean - truth(340);
    const double raw = points[3].log_y - truth(340);
    alone += raw * raw;
    together += fitted * fitted;
  }
  EXPECT_LT(together, 0.5 * alone);
}

TEST(Fit, states_an_uncertainty_that_holds_the_truth_as_often_as_it_says) {
  Rng rng(7);
  int held = 0;
  constexpr int kRuns = 1000;
  for (int i = 0; i < kRuns; ++i) {
    const Fit fit(sampled({210, 250, 290, 330, 350, 400, 480}, 0.004, rng));
    const Estimate estimate = fit.difference(340, 480);
    held += std::abs(estimate.mean - (truth(340) - truth(480))) <= 1.96 * estimate.deviation;
  }
  EXPECT_GE(held, 930);  // 95 % of 1000, less three deviations of a binomial
}

TEST(Fit, knows_that_errors_of_two_points_are_correlated) {
  Rng rng(1);
  const Fit fit(sampled({300, 480}, 0.01, rng));
  EXPECT_LT(fit.difference(400, 401).deviation, 0.5 * fit.at(400).deviation);
  EXPECT_DOUBLE_EQ(fit.difference(400, 400).mean, 0);
}

}  // namespace
}  // namespace halfwatt
