#pragma once

#include "base/numerical_state.h"
#include "measure/conditions.h"
#include "measure/energy.h"
#include "measure/notes.h"
#include "measure/prediction.h"
#include "measure/setting.h"
#include "measure/work.h"

namespace halfwatt {

/// One window at one setting: the only currency of tune, report and bench.
struct Measurement {
  Setting setting;
  Work work;
  Energy energy;
  Conditions conditions;
  NumericalState numerical_state = NumericalState::unknown;
  Notes notes;
  std::optional<Prediction> predicted = {};  ///< by the workload, before it ran
  Seconds started;  ///< since the start of the series; orders the windows

  /// Joules of one item; nullopt where no energy was measured.
  std::optional<Joules> joules_per_item() const;
  /// Whether a note or a dead network forbids using its figures.
  bool counts() const;
  /// Whether nothing more is to come of it: it counts, or was given up, or the network is dead,
  /// which it stays.
  bool settled() const;
};

}  // namespace halfwatt
