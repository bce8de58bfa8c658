#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/recorded_workload.h"

namespace halfwatt::bench {

/// A card and a workload whose right answers are known.
struct TrueCurve {
  std::string name;
  CardModel card;
  Watts demand;
  std::vector<RecordedPoint> points;  ///< ascending, every 10 W

  /// The lowest limit such that it and all higher ones keep `percent` of the speed at the top.
  double keep(double percent) const;
  /// Speed at `limit` over speed at the top.
  double share(double limit) const;
  /// Joules of a step at `limit`: what the card draws times the step's time.
  double energy(double limit) const;
  double least_energy() const;
};

/// The ten curves of the recorded RTX 3090 study.
std::vector<TrueCurve> study_curves();

/// A made-up card: clocks follow power by P = static + linear + cubic in the clock, a step has
/// a part that scales with the clock and one that waits for memory, below the lowest clock the
/// card idles in turns. Every limit is rough by 0.1 %.
TrueCurve made_up_curve(std::uint64_t seed);

}  // namespace halfwatt::bench
