#pragma once

#include <functional>

#include "guard/limit_guard.h"
#include "measure/meter.h"
#include "tune/search.h"

namespace halfwatt {

/// What a sweep works on. Everything outlives it.
struct TunerParts {
  Clock& clock;
  Device& device;
  Workload& workload;
  LimitGuard* limits = nullptr;      ///< null where the power limit is left alone
  std::vector<double> clamped = {};  ///< limits that stand for ones the card does not take
};

/// The loop of a sweep: ask the search, set, settle, measure, tell; until the search is
/// content.
class Tuner {
 public:
  using OnMeasurement = std::function<Result<void>(const Measurement&)>;

  Tuner(TunerParts parts, MeterRules rules, std::function<bool()> interrupted);

  /// Goes on from `measured`, where its time goes on too, and adds to it. Every new window is
  /// told to `tell` before the next begins; an error from it ends the sweep. A window that a
  /// rule rejects is measured again, at most twice. Limits are put back at the end, whatever
  /// happens.
  Result<void> run(const Search& search,
                   std::vector<Measurement>& measured,
                   const OnMeasurement& tell);

 private:
  Result<void> loop(const Search& search,
                    std::vector<Measurement>& measured,
                    const OnMeasurement& tell);
  Result<Measurement> attempt(const Setting& setting);

  TunerParts parts_;
  Meter meter_;
  Seconds earlier_;  ///< end of what was measured before this run
  bool warm_ = false;
};

}  // namespace halfwatt
