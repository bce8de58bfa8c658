#pragma once

#include <optional>
#include <vector>

#include "tune/curve.h"

namespace halfwatt {

/// From `from` upwards more of the knob gains nothing.
struct Plateau {
  double from = 0;
  double to = 0;
  bool seen_in_draw =
      false;  ///< the card drew less than the limit there; else told by speed alone
};

/// A point whose speed does not fit its neighbours'.
struct Outlier {
  double x = 0;
  double percent = 0;  ///< step time above what the neighbours give; negative: below
};

/// A higher limit that is slower than a lower one.
struct Descent {
  double from = 0;
  double to = 0;       ///< the next higher measured one, which is slower
  double percent = 0;  ///< by how much
};

/// The plateau at the top of a curve: at least three points and 8 % of the highest x over which
/// the speed is the same within 0.5 %, or the card drew at least 3 % less than the limit.
std::optional<Plateau> find_plateau(const Curve& curve, bool x_is_watts);

/// Points above 75 % of the reference speed that are off the line between their neighbours by
/// more than 0.5 % and four times the usual.
std::vector<Outlier> find_outliers(const Curve& curve);

/// Neighbouring pairs that fall by more than 0.5 %, the worst first.
std::vector<Descent> find_descents(const Curve& curve);

/// Where the curve bends most: the point farthest above the chord from its first to its last
/// point, both axes scaled to 1 (Satopaa et al., Finding a "Kneedle" in a Haystack, 2011);
/// nullopt for fewer than three points.
std::optional<double> find_knee(const Curve& curve);

}  // namespace halfwatt
