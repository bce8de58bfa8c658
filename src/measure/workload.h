#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/numerical_state.h"
#include "base/result.h"
#include "measure/prediction.h"
#include "measure/series.h"
#include "measure/setting.h"

namespace halfwatt {

/// How far a workload has come.
struct WorkDone {
  double count = 0;  ///< whole steps so far
  Seconds at;        ///< when the last of them ended
  int starts = 0;    ///< how often it had to be started anew: steps are missing between
  int stops = 0;     ///< how often whoever counts the steps was stopped, and saw nothing
  std::optional<WindowNote> stopped = {};  ///< why no more steps will come under this setting
  /// How often something else became what is counted: the steps before and after are different
  /// things.
  std::uint64_t changes = 0;
  /// When each of the last steps ended, the oldest first, as far as it remembers; empty where
  /// single steps are not seen.
  std::vector<Seconds> ends = {};
  /// Memory of the host that it held at most since it was started; nullopt: unknown.
  std::optional<Bytes> resident_peak = {};
};

/// What a workload is called and what one of its steps yields.
struct WorkloadInfo {
  std::string name;
  Labels labels;
  std::string unit = "step";  ///< of an item
  double items_per_step = 1;
};

/// Something that does steps and can be measured; a program, a recording or our own engine.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual const WorkloadInfo& info() const = 0;
  /// The knobs it applies itself; the power limit is never among them.
  virtual std::vector<Knob> knobs() const = 0;
  /// Takes the values of its own knobs from `setting`; called before every window.
  virtual Result<void> apply(const Setting& setting) = 0;
  virtual Result<void> start() = 0;
  virtual WorkDone work_done() = 0;
  virtual NumericalState numerical_state() = 0;
  virtual std::optional<Prediction> predict(const Setting& setting) const = 0;
  virtual void stop() = 0;
};

}  // namespace halfwatt
