#pragma once

#include <functional>

#include "base/clock.h"
#include "device/device.h"
#include "measure/measurement.h"
#include "measure/settling.h"
#include "measure/window.h"
#include "measure/workload.h"

namespace halfwatt {

/// All rules of the measuring protocol.
struct MeterRules {
  SettlingRules warm_up = warm_up_rules();
  SettlingRules settle;
  WindowRules window;
};

/// Runs the window protocol: reads clock, device and workload, and feeds the state machines.
class Meter {
 public:
  /// All of them outlive the Meter. `interrupted` is asked before every pause.
  Meter(Clock& clock,
        Device& device,
        Workload& workload,
        MeterRules rules,
        std::function<bool()> interrupted);

  /// Waits until speed and temperature are steady; false if they never were.
  Result<bool> warm_up();
  /// Finds out, while the job runs, whether the device's energy counter is to be trusted, and
  /// has the device take the answer: 2 s. Does nothing for a device that is sure of it, as are
  /// those on virtual time. An error: the device is lost or the user interrupted.
  Result<void> check_energy();
  /// Waits until the card has settled under `limit`, then measures one window. `setting` is
  /// noted as it is. Before the first window the energy is checked. An error: the device is
  /// lost or the user interrupted.
  Result<Measurement> measure(const Setting& setting, std::optional<Watts> limit);

 private:
  Result<Observation> observe(const Wanted& wanted);
  Result<Measurement> run_window(std::optional<Watts> limit);
  Result<bool> settle(const SettlingRules& rules);

  Clock* clock_;
  Device* device_;
  Workload* workload_;
  MeterRules rules_;
  std::function<bool()> interrupted_;
  Seconds begun_;
  bool energy_is_checked_ = false;
};

}  // namespace halfwatt
