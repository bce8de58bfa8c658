#include "tune/cheaper_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tune/energy.h"

namespace halfwatt {
namespace {

// Savings as shares of the energy.
constexpr double kLargeHope = 0.003;  // that a gap may hide
constexpr double kSmallHope = 0.001;
// A rise of energy at the lowest limit that one odd window could have made.
constexpr double kOddRise = 0.04;
// On the way down, the step is this share of the elasticity of energy, within bounds: far from
// the minimum energy falls nearly as fast as the limit.
constexpr double kStepPerElasticity = 0.45;
constexpr double kSmallestStep = 0.08;
constexpr double kLargestStep = 0.25;

/// The cheapest point and its neighbours, in log energy.
class Valley {
 public:
  Valley(const Curve& curve, const LimitSpace& space, const std::set<double>& tried)
      : space_(space), tried_(tried) {
    const EnergyFit fit(curve);
    for (const CurvePoint& point : curve.points) {
      x_.push_back(point.x);
      energy_.push_back(fit.at(point.x).mean);
      windows_.push_back(point.windows);
    }
    best_ = static_cast<std::size_t>(std::min_element(energy_.begin(), energy_.end()) -
                                     energy_.begin());
  }

  bool at_lowest() const { return best_ == 0; }
  bool at_highest() const { return best_ + 1 == x_.size(); }

  std::optional<double> way_down(Thrift thrift) const {
    const double elasticity =
        x_.size() > 1 ? (energy_[1] - energy_[0]) / std::log(x_[1] / x_[0]) : 0;
    const double share =
        std::clamp(kStepPerElasticity * elasticity, kSmallestStep, kLargestStep);
    if (const auto lower = open(std::min(x_[0] * (1 - share), x_[0] - space_.step))) {
      return lower;
    }
    return thrift == Thrift::small ? open(x_[0] + space_.step) : std::nullopt;
  }

  // One odd window at the lowest limit would end the way down: it is worth a second one.
  std::optional<double> doubtful_end() const {
    const bool doubtful = best_ == 1 && windows_[0] == 1 && energy_[0] - energy_[1] < kOddRise;
    return doubtful ? std::optional(x_[0]) : std::nullopt;
  }

  // The limit beside the cheapest point where, halfway between the least that convexity allows
  // and the most, energy is lowest; if there is room for a saving worth a window at all.
  std::optional<double> inside(Thrift thrift) const {
    const double hope = thrift == Thrift::large ? kLargeHope : kSmallHope;
    std::optional<double> choice;
    double lowest = std::numeric_limits<double>::infinity();
    for (const std::size_t below : {best_ - 1, best_}) {
      for (double x = x_[below + 1] - space_.step; x > x_[below]; x -= space_.step) {
        const double least = least_at(below, x);
        const double expected = (least + line(below, below + 1, x)) / 2;
        const auto limit = open(x);
        if (limit && energy_[best_] - least > hope && expected < lowest) {
          lowest = expected;
          choice = limit;
        }
      }
    }
    return choice;
  }

 private:
  // The limit on the grid nearest to x, if nobody asked for it yet.
  std::optional<double> open(double x) const {
    const double steps = std::round((space_.max - x) / space_.step);
    const double rounded = std::max(space_.max - steps * space_.step, space_.min);
    const bool free = rounded <= space_.max && tried_.count(rounded) == 0;
    return free ? std::optional(rounded) : std::nullopt;
  }

  double line(std::size_t i, std::size_t k, double x) const {
    return energy_[i] + (energy_[k] - energy_[i]) * (x - x_[i]) / (x_[k] - x_[i]);
  }

  // The least that the energy at x, between two neighbouring points, can be if it is convex:
  // the lines through the points on either side, drawn on.
  double least_at(std::size_t below, double x) const {
    double least = -std::numeric_limits<double>::infinity();
    if (below >= 1) {
      least = std::max(least, line(below - 1, below, x));
    }
    if (below + 2 < x_.size()) {
      least = std::max(least, line(below + 1, below + 2, x));
    }
    return least;
  }

  const LimitSpace& space_;
  const std::set<double>& tried_;
  std::vector<double> x_;
  std::vector<double> energy_;
  std::vector<int> windows_;
  std::size_t best_ = 0;
};

}  // namespace

std::optional<double> cheaper_limit(const Curve& curve,
                                    const LimitSpace& space,
                                    const std::set<double>& tried,
                                    Thrift thrift) {
  const Valley valley(curve, space, tried);
  if (valley.at_lowest()) {
    return valley.way_down(thrift);
  }
  if (valley.at_highest()) {
    return std::nullopt;
  }
  if (const auto x = valley.inside(thrift)) {
    return x;
  }
  const bool repeat = thrift == Thrift::small && !curve.repeats_exactly();
  return repeat ? valley.doubtful_end() : std::nullopt;
}

}  // namespace halfwatt
