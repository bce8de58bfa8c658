#pragma once

#include <optional>

#include "measure/observation.h"

namespace halfwatt {

/// When speed and temperature count as settled.
struct SettlingRules {
  Seconds at_least{2};  ///< power regulation and its 1 s average need that long
  Seconds at_most{60};  ///< then the window begins all the same, with a note
  Seconds block{1};     ///< speed is compared between blocks of this length and a step or more
  double speed_change = 0.02;      ///< between two successive blocks
  double kelvin_per_second = 0.1;  ///< slope of the temperature
};

/// The warm-up before the first window: the slope of 0.5 C in 30 s, at most five minutes.
inline SettlingRules warm_up_rules() {
  return {Seconds(10), Seconds(300), Seconds(2), 0.01, 0.5 / 30};
}

/// Waits, on observations alone, until a workload runs steadily.
class Settling {
 public:
  explicit Settling(SettlingRules rules) : rules_(rules) {}

  enum class State { waiting, settled, gave_up };
  /// Takes one more observation; later than the last.
  State feed(const Observation& observation);
  /// How long to wait until the next observation.
  Seconds pause() const;
  /// What that one is to hold.
  Wanted wants() const { return {false, SampleDetail::full}; }

 private:
  bool temperature_is_steady(const Observation& observation);
  void close_block(const WorkDone& work);

  SettlingRules rules_;
  std::optional<Seconds> begun_;
  std::optional<WorkDone> block_start_;
  std::optional<double> last_step_time_;
  bool speed_is_steady_ = false;
  std::optional<double> temperature_;
  Seconds temperature_at_;
  bool temperature_is_steady_ = false;
};

}  // namespace halfwatt
