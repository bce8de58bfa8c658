#include "tune/energy.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halfwatt {
namespace {

constexpr double kFlat = 0.005;

bool all_have_joules(const Curve& curve) {
  return !curve.empty() &&
         std::all_of(curve.points.begin(), curve.points.end(),
                     [](const CurvePoint& point) { return point.joules_per_item.has_value(); });
}

std::vector<FitPoint> energy_points(const Curve& curve) {
  const bool metered = all_have_joules(curve);
  const double noise = curve.noise.value_or(0);
  std::vector<FitPoint> points;
  for (const CurvePoint& point : curve.points) {
    const double energy = metered ? *point.joules_per_item : point.x * point.step_time.value();
    points.push_back({point.x, std::log(energy), noise * noise / point.windows});
  }
  return points;
}

}  // namespace

std::string_view text(EnergyBasis basis) {
  return basis == EnergyBasis::measured ? "measured" : "limit-times-time";
}

std::optional<EnergyBasis> energy_basis(const Curve& curve, const Knob& knob) {
  if (all_have_joules(curve)) {
    return EnergyBasis::measured;
  }
  if (!curve.empty() && knob.unit == "W") {
    return EnergyBasis::limit_times_time;
  }
  return std::nullopt;
}

double joules_per_item(const Curve& curve, std::size_t i, EnergyBasis basis) {
  const CurvePoint& point = curve.points[i];
  return basis == EnergyBasis::measured
             ? *point.joules_per_item
             : std::min(point.x, curve.binding_limit.value_or(point.x)) * curve.cards /
                   point.items_per_second;
}

std::optional<LeastEnergy> least_energy(const Curve& curve, const Knob& knob) {
  const std::optional<EnergyBasis> basis = energy_basis(curve, knob);
  if (!basis) {
    return std::nullopt;
  }
  std::vector<double> energy;
  std::vector<double> energy_delay;
  const bool smooth = curve.noise.has_value() && curve.points.front().x > 0;
  const std::optional<Fit> fit =
      smooth ? std::optional<Fit>(energy_points(curve)) : std::nullopt;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    energy.push_back(fit ? std::exp(fit->at(curve.points[i].x).mean)
                         : joules_per_item(curve, i, *basis));
    energy_delay.push_back(energy.back() / curve.points[i].items_per_second);
  }
  const auto least =
      static_cast<std::size_t>(std::min_element(energy.begin(), energy.end()) - energy.begin());
  std::size_t low = least;
  while (low > 0 && energy[low - 1] <= energy[least] * (1 + kFlat)) {
    --low;
  }
  std::size_t high = least;
  while (high + 1 < energy.size() && energy[high + 1] <= energy[least] * (1 + kFlat)) {
    ++high;
  }
  const auto delay = static_cast<std::size_t>(
      std::min_element(energy_delay.begin(), energy_delay.end()) - energy_delay.begin());
  const auto& points = curve.points;
  return LeastEnergy{points[least].x,
                     joules_per_item(curve, least, *basis),
                     *basis,
                     {points[low].x, points[high].x},
                     points[delay].x};
}

EnergyFit::EnergyFit(const Curve& curve) : fit_(energy_points(curve)) {}

}  // namespace halfwatt
