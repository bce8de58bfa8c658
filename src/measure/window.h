#pragma once

#include <optional>
#include <vector>

#include "measure/measurement.h"
#include "measure/observation.h"

namespace halfwatt {

/// How long a window is and what makes it void.
struct WindowRules {
  double min_steps = 20;
  int min_ticks = 20;  ///< of the energy counter: its quantisation is then below 1 %
  Seconds min_duration{2};
  Seconds patience{300};        ///< without a step, or a tick of the counter, until it gives up
  double max_throttled = 0.01;  ///< share of the window
  double max_temperature_drift = 3;  ///< kelvin
  double max_energy_gap = 0.05;      ///< between counter and integral of power
  double max_variation = 0.10;       ///< of step times: standard deviation over mean
  /// The time of a step is the mean of the window, not the median step: for a device that
  /// stops the job in turns which are longer than a step, so that the median is one that was
  /// not stopped.
  bool mean_step_time = false;
};

/// One window as a state machine: it begins and ends on edges of the energy counter, or on
/// steps where there is no counter, and then tells what it saw. It never waits or reads by
/// itself, so it runs on any clock.
class Window {
 public:
  /// `tick`: how often the energy counter moves; nullopt without a counter. `limit`: what was
  /// set and must stay in force; nullopt where no limit is controlled.
  Window(WindowRules rules, std::optional<Seconds> tick, std::optional<Watts> limit);

  /// Takes one more observation, later than the last; true when the window is over.
  bool feed(const Observation& observation);
  /// How long to wait until the next observation: short near an edge, a step or so otherwise.
  Seconds pause() const;

  /// What the window found; call when feed() returned true. Setting, numerical state, items of
  /// a step and energy error are the caller's to fill in.
  Measurement result() const;

 private:
  enum class Phase { first_edge, inside, last_edge, over };

  bool edge_is_here(const Observation& observation) const;
  void advance(const Observation& observation);
  void lose_patience(Seconds now);
  bool is_other_limit(const std::optional<double>& watts) const;
  void take_in(const Observation& observation);
  bool long_enough(const Observation& observation) const;
  Conditions conditions() const;
  Energy energy(Notes& notes) const;
  void judge(Notes& notes, const Conditions& seen) const;
  double variation() const;

  WindowRules rules_;
  std::optional<Seconds> tick_;
  std::optional<Watts> limit_;
  Phase phase_ = Phase::first_edge;
  std::optional<Observation> previous_;
  Observation first_;
  Observation last_;
  Seconds last_progress_;
  Seconds phase_begun_;
  bool stuck_ = false;
  std::optional<WindowNote> stopped_;
  bool restarted_ = false;
  bool counter_stopped_ = false;
  std::vector<double> step_times_;
  Joules integral_{0};
  bool power_is_known_ = true;
  bool foreign_ = false;
  bool limit_moved_ = false;
  bool counter_fell_ = false;
};

}  // namespace halfwatt
