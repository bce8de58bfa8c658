#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "tune/curve.h"
#include "tune/fit.h"

namespace halfwatt {

/// What a figure of energy rests on.
enum class EnergyBasis {
  measured,          ///< joules or watts that somebody metered
  limit_times_time,  ///< the limit, or the start of its plateau, as if the card always drew it:
                     ///< an estimate, an upper bound only where the card honours the cap
};

std::string_view text(EnergyBasis basis);

/// Measured where every point of the curve has joules; limit times time otherwise, which needs
/// a knob in watts; nullopt where neither is there.
std::optional<EnergyBasis> energy_basis(const Curve& curve, const Knob& knob);

/// Joules of one item at the i-th point, on a basis that the curve has.
double joules_per_item(const Curve& curve, std::size_t i, EnergyBasis basis);

/// The limit that costs the least energy an item.
struct LeastEnergy {
  double limit = 0;
  double joules_per_item = 0;
  EnergyBasis basis = EnergyBasis::measured;
  std::pair<double, double> flat;  ///< limits around it that cost at most 0.5 % more
  double energy_delay_limit = 0;   ///< least energy times time
};

/// Finds it among the measured points; nullopt for an empty curve or one without energy.
std::optional<LeastEnergy> least_energy(const Curve& curve, const Knob& knob);

/// Log of energy an item as a smooth curve, for a search; joules where measured, else limit
/// times time. Only differences mean anything.
class EnergyFit {
 public:
  explicit EnergyFit(const Curve& curve);
  Estimate at(double x) const { return fit_.at(x); }
  Estimate difference(double x, double other) const { return fit_.difference(x, other); }

 private:
  Fit fit_;
};

}  // namespace halfwatt
