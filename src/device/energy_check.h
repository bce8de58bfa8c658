#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "device/device.h"

namespace halfwatt {

/// How a device's joules are best known.
struct EnergyJudgement {
  EnergyMethod method = EnergyMethod::none;
  std::optional<Seconds> tick;           ///< of the counter, where that is the method
  std::optional<double> relative_error;  ///< of absolute joules
  bool checked = false;                  ///< false: what such devices usually have
  std::string why;                       ///< one line for people
};

/// What is assumed before anything was checked.
EnergyJudgement usual_judgement(bool has_counter, bool has_power, Seconds usual_tick);

struct EnergyCheckRules {
  Seconds duration{2};
  double max_gap = 0.05;     ///< between counter and integral of power, as a share, and ...
  Joules max_joules_gap{2};  ///< ... in joules: both must be passed to distrust the counter
  /// Slopes of boards' sensors against a wattmeter were 0.94 to 1.06 (docs/devices.md).
  double sensor_error = 0.06;
  std::string_view power = "instant power";  ///< what is summed up, for people
};

/// Compares an energy counter with the integral of instant power, and finds its tick. Fed by
/// whoever reads; it never waits or reads by itself, so it runs on any clock.
class EnergyCheck {
 public:
  explicit EnergyCheck(EnergyCheckRules rules = {}) : rules_(rules) {}

  /// Takes one more reading, later than the last; true when it has seen enough.
  bool feed(Seconds now, std::optional<Joules> energy, std::optional<Watts> power);
  /// How long to wait until the next one: as good as not at all, since ticks must be seen.
  static Seconds pause() { return Seconds(0.001); }
  /// What was found so far.
  EnergyJudgement result() const;
  /// Whether there is a counter and the power agrees with it.
  bool agrees() const;

 private:
  void see_tick(Seconds now, Joules energy);
  EnergyJudgement without_counter(std::string why) const;
  EnergyJudgement compared() const;

  EnergyCheckRules rules_;
  std::optional<Seconds> begun_;
  Seconds last_now_;
  std::optional<Joules> last_energy_;
  std::optional<Watts> last_power_;
  Joules integral_{0};
  bool has_counter_ = false;
  bool power_is_known_ = true;
  bool counter_fell_ = false;
  std::vector<double> intervals_;
  std::optional<Seconds> last_tick_;
  Joules first_tick_energy_{0};
  Joules first_tick_integral_{0};
  Joules last_tick_energy_{0};
  Joules last_tick_integral_{0};
};

/// Reads `device` for as long as the rules say, 2 s, and judges it. A counter that instant
/// power contradicts is trusted all the same where the device's own average agrees with it:
/// instant power is that of a quarter of the time on some cards, and a load in step with that
/// is seen in one phase only. `interrupted` ends it early. An error: the device is lost.
Result<EnergyJudgement> check_energy(Clock& clock,
                                     Device& device,
                                     EnergyCheckRules rules = {},
                                     const std::function<bool()>& interrupted = {});

}  // namespace halfwatt
