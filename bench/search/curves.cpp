#include "search/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "tune/playback.h"

namespace halfwatt::bench {
namespace {

constexpr double kStep = 10;

const RecordedPoint& at(const std::vector<RecordedPoint>& points, double limit) {
  return *std::min_element(points.begin(), points.end(), [limit](const auto& a, const auto& b) {
    return std::abs(a.limit.value() - limit) < std::abs(b.limit.value() - limit);
  });
}

}  // namespace

double TrueCurve::share(double limit) const {
  return points.back().step_time / at(points, limit).step_time;
}

double TrueCurve::keep(double percent) const {
  double lowest = points.back().limit.value();
  for (auto it = points.rbegin(); it != points.rend(); ++it) {
    if (100 * share(it->limit.value()) < percent) {
      break;
    }
    lowest = it->limit.value();
  }
  return lowest;
}

double TrueCurve::energy(double limit) const {
  return std::min(limit, demand.value()) * at(points, limit).step_time.value();
}

double TrueCurve::least_energy() const {
  double least = energy(points.front().limit.value());
  for (const RecordedPoint& point : points) {
    least = std::min(least, energy(point.limit.value()));
  }
  return least;
}

std::vector<TrueCurve> study_curves() {
  std::vector<TrueCurve> curves;
  for (const RecordedSeries& series : *embedded_study()) {
    curves.push_back({series.info.name, series.card, series.demand, series.curve});
  }
  return curves;
}

TrueCurve made_up_curve(std::uint64_t seed) {
  Rng rng(seed * 7919 + 17);
  TrueCurve made;
  made.name = fmt::format("made-up-{}", seed);
  const double top = kStep * std::round(rng.uniform(30, 70));
  const double floor = kStep * std::round(top * rng.uniform(0.25, 0.45) / kStep);
  made.card.name = made.name;
  made.card.limits = {Watts(floor), Watts(top), Watts(top)};
  made.demand = Watts(top * rng.uniform(0.7, 1.25));
  // Power over clock at full speed: static, linear and cubic parts that add to the demand.
  const double fixed = rng.uniform(0.15, 0.35);
  const double linear = (1 - fixed) * rng.uniform(0.1, 0.5);
  const double cubic = 1 - fixed - linear;
  const double lowest_clock = rng.uniform(0.3, 0.5);
  const double memory = rng.uniform(0, 0.6);
  const double step_time = std::exp(rng.uniform(std::log(0.1), std::log(3.0)));
  const auto power = [&](double clock) {
    return made.demand.value() * (fixed + linear * clock + cubic * clock * clock * clock);
  };
  const auto count = static_cast<int>(std::lround((top - floor) / kStep)) + 1;
  for (int i = 0; i < count; ++i) {
    const double limit = floor + i * kStep;
    double low = lowest_clock;
    double high = 1;
    for (int halving = 0; halving < 60; ++halving) {
      const double middle = (low + high) / 2;
      (power(middle) > limit ? high : low) = middle;
    }
    const double clock = power(1) <= limit ? 1 : low;
    const double idle = made.demand.value() * fixed;
    const double duty = std::clamp((limit - idle) / (power(lowest_clock) - idle), 0.2, 1.0);
    const double time = step_time * ((1 - memory) / clock + memory) / duty;
    made.points.push_back({Watts(limit), Seconds(time)});
  }
  return made;
}

}  // namespace halfwatt::bench
