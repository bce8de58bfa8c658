#pragma once

#include <string>
#include <vector>

#include "device/simulated.h"
#include "measure/recorded_workload.h"
#include "measure/series.h"
#include "tune/import_csv.h"

namespace halfwatt {

/// One series of a recorded study, ready to be run again on a simulated card.
struct RecordedSeries {
  WorkloadInfo info;
  CardModel card;
  Watts demand;  ///< invented: see docs/simulated.md
  NumericalState state = NumericalState::unknown;
  std::vector<RecordedPoint> curve;
};

/// The series of `recorded` that can be played back: along a power limit in watts, with at
/// least two limits. Repeats of a limit are joined by their median. `prefix` begins every
/// workload's name: "study" gives "study:train-fp32".
std::vector<RecordedSeries> playable(const std::vector<Series>& recorded,
                                     std::string_view prefix);

/// The recorded RTX 3090 study that is part of the program, as it was read.
Result<Imported> import_embedded_study();

/// The same, ready to be played back.
Result<std::vector<RecordedSeries>> embedded_study();

}  // namespace halfwatt
