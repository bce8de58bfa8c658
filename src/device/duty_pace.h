#pragma once

#include "base/units.h"

namespace halfwatt {

/// What a group may still use of processor time so that over all turns it has the speed it is
/// to have. Pure: the times are told.
class DutyPace {
 public:
  /// Processor time that came due. Returns how much of it is lost, since so much was left
  /// unused already that it is no longer made up for.
  Seconds allow(Seconds run);
  /// Processor time that was used.
  void use(Seconds run);
  /// What is left; negative if too much was used, which later turns make up for.
  Seconds left() const { return left_; }

 private:
  Seconds left_;
};

}  // namespace halfwatt
