#pragma once

#include <optional>
#include <string>

#include "base/device_id.h"
#include "base/result.h"
#include "base/units.h"
#include "device/energy_method.h"
#include "device/signal.h"

namespace halfwatt {

/// The range a card accepts for its power limit.
struct LimitRange {
  Watts min;
  Watts max;
  std::optional<Watts> preset;  ///< the limit the vendor ships
  bool operator==(const LimitRange&) const = default;
};

struct EnergyJudgement;

/// What does not change about a device while it is measured.
struct DeviceInfo {
  DeviceId id;
  std::string name;
  std::optional<LimitRange> limits;  ///< absent where the device has no power limit
  std::optional<Seconds>
      energy_tick;  ///< how often its energy counter moves; absent without one
  std::optional<double> energy_error;  ///< relative, of absolute joules
  bool simulated = false;
  EnergyMethod energy_method = EnergyMethod::none;  ///< where its joules come from
  bool energy_is_checked = false;  ///< false: tick and method are what such cards usually have
  std::string pci;                 ///< `0000:65:00.0`; empty: unknown or none
  bool shared = false;             ///< others may use it too, and its user accepts that
  bool sliced = false;             ///< MIG is on: its power is that of all slices together
  /// How often its power shows something new; absent: at any time.
  std::optional<Seconds> sensor_period = {};
};

/// One thing that is measured. Reads only: guard/ is the room that writes.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// All signals but energy, now. An error means that the device is lost.
  virtual Result<Sample> read() = 0;
  /// What one cheap call tells: power, limits and times under limits where the device can; the
  /// other signals are nullopt. For reading many times a second. Errors: as read().
  virtual Result<Sample> read_quickly() { return read(); }
  /// Joules since some fixed time, as the counter shows them now; nullopt without a counter.
  /// Apart from read(), since on real cards this call can take milliseconds.
  virtual std::optional<Joules> energy() = 0;
  /// Takes the energy method that a check found, for info() and energy(). A device whose method
  /// never is in doubt has none to take.
  virtual void take(const EnergyJudgement&) {}
};

}  // namespace halfwatt
