#pragma once

#include <optional>

#include "base/units.h"

namespace halfwatt {

/// How long a group may run in the next turn so that over all turns it gets a share of what it
/// would get if it was never stopped. Pure: the times are told.
///
/// Time alone does not say that where others want the same processors. A group that slept is
/// given more than its part of them for some 50 ms after it is continued (the scheduler owes
/// it, and weighs it by its load of before), and a signal may take effect late. So what counts
/// is processor time, in units of what the group gets in a second once it has run for a while.
class DutyPace {
 public:
  /// The group ran for `time` undisturbed and long enough after its last stop, and used `run`.
  void saw_steady(Seconds time, Seconds run);
  /// How much undisturbed time gives as much processor time as `run`, used while the group was
  /// allowed to run for `allowed`. A group that hardly computes is counted by time.
  Seconds worth(Seconds allowed, Seconds run) const;
  /// How long the group may run in a turn of `length`: its share less what it had too much.
  Seconds time_on(Seconds length, double share) const;
  /// A turn of `elapsed` is over that was worth `worth`.
  void close_turn(Seconds elapsed, double share, Seconds worth);
  /// What lies back is forgiven: the group was not held to a share meanwhile.
  void forgive() { debt_ = Seconds(0); }

 private:
  std::optional<double> rate_;  ///< processors that the undisturbed group uses
  Seconds debt_;                ///< worth that it got too much
};

}  // namespace halfwatt
