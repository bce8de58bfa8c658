#pragma once

#include <optional>

#include "measure/measurement.h"
#include "measure/observation.h"
#include "measure/sampled_power.h"
#include "measure/step_times.h"

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
  Seconds max_sleep{0.1};  ///< of the machine; the two clocks that tell it are read in turn
  /// Over how long a stretch steps are taken together before their variation is judged, for
  /// jobs that tell their steps in bursts; 0: each for itself.
  Seconds stretch{0};
  /// The time of a step is the mean of the window, not the median step: for jobs that tell
  /// their steps in bursts, and for a device that stops the job in turns which are longer than
  /// a step, so that the median is one that was not stopped.
  bool mean_step_time = false;
};

/// What a window must know of the device that it is measured on.
struct WindowDevice {
  std::optional<Seconds> tick = {};           ///< of a trusted energy counter; nullopt: none
  std::optional<Seconds> sensor_period = {};  ///< of its power; nullopt: it is always new
};

/// One window as a state machine: it begins and ends on ticks of the energy counter, or on
/// steps where no counter is to be trusted, and then tells what it saw. It never waits or reads
/// by itself, so it runs on any clock.
///
/// Near an edge only that is read which finds it, since one look at a counter can take
/// milliseconds; all signals are read right behind it. Inside, power is sampled twice in a
/// period of its sensor, all else once a second.
class Window {
 public:
  /// `limit`: what was set and must stay in force; nullopt where no limit is controlled.
  Window(WindowRules rules, WindowDevice device, std::optional<Watts> limit);

  /// Takes one more observation, not earlier than the last; true when the window is over.
  bool feed(const Observation& observation);
  /// How long to wait until the next observation: short near an edge, a step or so otherwise.
  Seconds pause() const;
  /// What that one is to hold.
  Wanted wants() const;

  /// What the window found; call when feed() returned true. Setting, numerical state, items of
  /// a step and the sensor's error are the caller's to fill in.
  Measurement result() const;

 private:
  enum class Phase { first_edge, opening, inside, last_edge, closing, over };
  /// Where the window begins or ends.
  struct Edge {
    StepTimes::Moment moment;
    std::optional<Joules> energy;
    Seconds uncertain;  ///< length of the time in which it lies
  };

  bool looks_for_edge() const;
  bool is_in_window() const;
  std::optional<Edge> find_edge(const Observation& observation) const;
  void advance(const Observation& observation);
  void lose_patience(Seconds now);
  void take_in(const Observation& observation);
  void take_in_reading(const EnergyReading& reading);
  void take_in_sample(const Sample& sample, Seconds now);
  void take_in_work(const Observation& observation);
  bool is_other_limit(const std::optional<double>& watts) const;
  bool long_enough(const Observation& observation) const;
  Seconds sample_period() const;
  Conditions conditions() const;
  Energy energy(Notes& notes) const;
  Energy counted(Notes& notes) const;
  bool disagrees(const SampledPower& power, Joules used) const;
  void judge(Notes& notes, const Conditions& seen) const;

  WindowRules rules_;
  WindowDevice device_;
  std::optional<Watts> limit_;
  Phase phase_ = Phase::first_edge;
  bool begun_ = false;
  Seconds now_;
  WorkDone work_;
  Edge first_;
  Edge last_;
  Seconds last_progress_;
  Seconds phase_begun_;
  Seconds asleep_;  ///< when the window began
  StepTimes step_times_;
  SampledPower power_;
  SampledPower average_power_;  ///< as the device averages it

  std::optional<EnergyReading> reading_;  ///< the last one that looks for the present edge
  std::optional<Joules> counter_;         ///< as it was told last
  std::optional<Seconds> counter_at_;
  bool counter_is_silent_ = false;

  Sample latest_;  ///< each signal as it was told last
  std::optional<Seconds> latest_at_;
  std::optional<Seconds> latest_full_at_;
  Sample opening_;
  Seconds opening_at_;

  bool stuck_ = false;
  std::optional<WindowNote> stopped_;
  bool restarted_ = false;
  bool suspended_ = false;
  bool progress_changed_ = false;
  bool counter_stopped_ = false;
  bool foreign_ = false;
  bool limit_moved_ = false;
  bool counter_fell_ = false;
};

}  // namespace halfwatt
