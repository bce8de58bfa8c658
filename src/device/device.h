#pragma once

#include <optional>
#include <string>

#include "base/device_id.h"
#include "base/result.h"
#include "base/units.h"
#include "device/signal.h"

namespace halfwatt {

/// The range a card accepts for its power limit.
struct LimitRange {
  Watts min;
  Watts max;
  std::optional<Watts> preset;  ///< the limit the vendor ships
  bool operator==(const LimitRange&) const = default;
};

/// What does not change about a device while it is measured.
struct DeviceInfo {
  DeviceId id;
  std::string name;
  std::optional<LimitRange> limits;  ///< absent where the device has no power limit
  std::optional<Seconds>
      energy_tick;  ///< how often its energy counter moves; absent without one
  std::optional<double> energy_error;  ///< relative, of absolute joules
  bool simulated = false;
};

/// One thing that is measured. Reads only: guard/ is the room that writes.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// All signals but energy, now. An error means that the device is lost.
  virtual Result<Sample> read() = 0;
  /// Joules since some fixed time, as the counter shows them now; nullopt without a counter.
  /// Apart from read(), since on real cards this call can take milliseconds.
  virtual std::optional<Joules> energy() = 0;
};

}  // namespace halfwatt
