#include "tune/cheaper_limit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tune/energy.h"

namespace halfwatt {
namespace {

// Savings as shares of the energy.
constexpr double kLargeSaving = 0.003;
constexpr double kSmallSaving = 0.00025;
constexpr double kLargeHope = 0.01;  // that a wide gap may hide
constexpr double kSmallHope = 0.003;
constexpr double kNeighbourHope = 0.001;
// A neighbour that the parabola puts this much higher is still looked at, since curves are
// rough; the second bound is for one that, by convexity alone, could be cheaper.
constexpr double kRough = 0.008;
constexpr double kTooFarUp = 0.02;
// A rise of energy at the lowest limit that one odd window could have made.
constexpr double kOddRise = 0.04;
// On the way down, the step is this share of the elasticity of energy, within bounds: far from
// the minimum energy falls nearly as fast as the limit.
constexpr double kStepPerElasticity = 0.45;
constexpr double kSmallestStep = 0.08;
constexpr double kLargestStep = 0.25;
constexpr double kGolden = 0.38;
constexpr double kWideGap = 4;  // steps of the grid

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

  std::optional<double> inside(Thrift thrift) const {
    const bool large = thrift == Thrift::large;
    const double vertex = offset();
    const double saving = curvature() * vertex * vertex;
    if (saving > (large ? kLargeSaving : kSmallSaving)) {
      if (const auto x = open(x_[best_] + vertex)) {
        return x;
      }
    }
    if (const auto x = golden_section(large ? kLargeHope : kSmallHope)) {
      return x;
    }
    return large ? std::nullopt : neighbour();
  }

 private:
  double left() const { return x_[best_] - x_[best_ - 1]; }
  double right() const { return x_[best_ + 1] - x_[best_]; }
  double rise_left() const { return (energy_[best_ - 1] - energy_[best_]) / left(); }
  double rise_right() const { return (energy_[best_ + 1] - energy_[best_]) / right(); }
  double curvature() const { return (rise_left() + rise_right()) / (left() + right()); }

  // From the cheapest point to the vertex of the parabola.
  double offset() const {
    const double bend = curvature();
    return bend > 0 ? (bend * right() - rise_right()) / (2 * bend) : 0;
  }

  // The limit on the grid nearest to x, if nobody asked for it yet.
  std::optional<double> open(double x) const {
    const double steps = std::round((space_.max - x) / space_.step);
    const double rounded = std::max(space_.max - steps * space_.step, space_.min);
    const bool free = rounded <= space_.max && tried_.count(rounded) == 0;
    return free ? std::optional(rounded) : std::nullopt;
  }

  // A cliff at the end of a wide gap draws the parabola's vertex to the cheapest point itself,
  // while the slope on its other side says that the gap may hide a lower one.
  std::optional<double> golden_section(double hope) const {
    if (std::abs(offset()) >= space_.step) {
      return std::nullopt;
    }
    const bool left_is_wider = left() > right();
    const double gap = left_is_wider ? left() : right();
    const double slope = left_is_wider ? rise_right() : rise_left();
    if (gap < kWideGap * space_.step || slope * kGolden * gap < hope) {
      return std::nullopt;
    }
    return open(x_[best_] + (left_is_wider ? -kGolden : kGolden) * gap);
  }

  std::optional<double> neighbour() const {
    const double towards_vertex = offset() > 0 ? space_.step : -space_.step;
    for (const double distance : {towards_vertex, -towards_vertex}) {
      const double expected = curvature() * distance * (distance - 2 * offset());
      const double hope = (distance < 0 ? rise_right() : rise_left()) * space_.step;
      const bool worthwhile =
          expected < kRough || (hope > kNeighbourHope && expected < kTooFarUp);
      if (worthwhile) {
        if (const auto x = open(x_[best_] + distance)) {
          return x;
        }
      }
    }
    return std::nullopt;
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
  if (const auto x = valley.doubtful_end()) {
    return x;
  }
  return valley.inside(thrift);
}

}  // namespace halfwatt
