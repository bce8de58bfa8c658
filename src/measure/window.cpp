#include "measure/window.h"

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"

namespace halfwatt {
namespace {

constexpr double kReadsPerTick = 50;    // an edge is then known to 2 % of a tick
constexpr double kLimitRounding = 0.5;  // W: cards round what is set

std::optional<double> delta(const Sample& from, const Sample& to, SignalId id) {
  if (!from[id] || !to[id]) {
    return std::nullopt;
  }
  return *to[id] - *from[id];
}

// Steps from one observation to another, in fractions: the last whole one ended at `work.at`.
double steps_between(const Observation& from, const Observation& to, double step_time) {
  const auto steps_at = [step_time](const Observation& seen) {
    const double since = (seen.now - seen.work.at).value() / step_time;
    return seen.work.count + std::clamp(since, 0.0, 1.0);
  };
  return steps_at(to) - steps_at(from);
}

}  // namespace

Window::Window(WindowRules rules, std::optional<Seconds> tick, std::optional<Watts> limit)
    : rules_(rules), tick_(tick), limit_(limit) {}

bool Window::edge_is_here(const Observation& observation) const {
  // A counter that falls was reset in the middle of a tick.
  return tick_ ? previous_->energy && observation.energy > previous_->energy
               : observation.work.count > previous_->work.count;
}

bool Window::long_enough(const Observation& observation) const {
  const Seconds elapsed = observation.now - first_.now;
  return !step_times_.empty() &&
         steps_between(first_, observation, median(step_times_)) >= rules_.min_steps &&
         elapsed >= rules_.min_duration &&
         (!tick_ || elapsed >= *tick_ * static_cast<double>(rules_.min_ticks));
}

bool Window::feed(const Observation& observation) {
  if (previous_) {
    advance(observation);
  } else {
    first_ = observation;
    last_progress_ = phase_begun_ = observation.now;
  }
  last_ = observation;
  previous_ = observation;
  if (observation.work.stopped) {
    stopped_ = observation.work.stopped;
    phase_ = Phase::over;
  }
  return phase_ == Phase::over;
}

void Window::advance(const Observation& observation) {
  const Phase before = phase_;
  const bool edge = edge_is_here(observation);
  if (observation.work.count > previous_->work.count) {
    last_progress_ = observation.now;
  }
  if (phase_ == Phase::first_edge) {
    if (edge) {
      first_ = observation;
      phase_ = Phase::inside;
    }
  } else {
    take_in(observation);
    // Inside, observations are far apart: a change seen there is no edge yet.
    if (phase_ == Phase::last_edge && edge) {
      phase_ = Phase::over;
    } else if (phase_ == Phase::inside && long_enough(observation)) {
      phase_ = Phase::last_edge;
    }
  }
  if (phase_ != before) {
    phase_begun_ = observation.now;
  }
  lose_patience(observation.now);
}

void Window::lose_patience(Seconds now) {
  const bool waits_for_counter =
      tick_ && (phase_ == Phase::first_edge || phase_ == Phase::last_edge);
  stuck_ = now - last_progress_ > rules_.patience;
  counter_stopped_ = waits_for_counter && now - phase_begun_ > rules_.patience;
  if (stuck_ || counter_stopped_) {
    phase_ = Phase::over;
  }
}

void Window::take_in(const Observation& observation) {
  const double steps = observation.work.count - previous_->work.count;
  if (steps > 0) {
    step_times_.push_back((observation.work.at - previous_->work.at).value() / steps);
  }
  const auto& power = observation.sample[SignalId::power];
  const auto& before = previous_->sample[SignalId::power];
  if (power && before) {
    integral_ += Watts((*power + *before) / 2) * (observation.now - previous_->now);
  } else {
    power_is_known_ = false;
  }
  restarted_ = restarted_ || observation.work.starts != previous_->work.starts;
  foreign_ = foreign_ || observation.sample[SignalId::foreign_processes].value_or(0) > 0;
  counter_fell_ = counter_fell_ || observation.energy < previous_->energy;
  limit_moved_ = limit_moved_ || is_other_limit(observation.sample[SignalId::requested_limit]);
}

bool Window::is_other_limit(const std::optional<double>& watts) const {
  return watts && limit_ && std::abs(*watts - limit_->value()) > kLimitRounding;
}

Seconds Window::pause() const {
  if (phase_ != Phase::inside) {
    return tick_ ? *tick_ / kReadsPerTick : Seconds(0.005);
  }
  // About once a step, so that single steps are seen, within what a sampler can do; and not
  // past the end, so that no more is measured than was asked for.
  const double step = step_times_.empty() ? 0.1 : step_times_.back();
  const double left = rules_.min_steps - steps_between(first_, last_, step);
  return Seconds(std::clamp(left > 0 ? std::min(1.0, left) * step : step, 0.05, 1.0));
}

Measurement Window::result() const {
  Measurement measured;
  measured.started = first_.now;
  measured.work.duration = last_.now - first_.now;
  measured.conditions = conditions();
  if (stopped_) {
    measured.notes.push_back(*stopped_);
    return measured;
  }
  if (stuck_ || step_times_.empty()) {
    measured.notes.push_back(counter_stopped_ && !stuck_ ? WindowNote::energy_disagrees
                                                         : WindowNote::no_progress);
    return measured;
  }
  const MedianInterval step = median_interval(step_times_);
  measured.work.steps = steps_between(first_, last_, step.median);
  measured.work.step_time = Seconds(step.median);
  if (rules_.mean_step_time && measured.work.steps > 0) {
    measured.work.step_time = measured.work.duration / measured.work.steps;
  } else if (step.low && step.high) {
    measured.work.step_time_low = Seconds(*step.low);
    measured.work.step_time_high = Seconds(*step.high);
  }
  judge(measured.notes, measured.conditions);
  measured.energy = energy(measured.notes);
  return measured;
}

Conditions Window::conditions() const {
  const auto watts = [](const std::optional<double>& value) {
    return value ? std::optional(Watts(*value)) : std::nullopt;
  };
  const auto clock = [](const std::optional<double>& value) {
    return value ? std::optional(Megahertz(*value)) : std::nullopt;
  };
  const auto celsius = [](const std::optional<double>& value) {
    return value ? std::optional(Celsius(*value)) : std::nullopt;
  };
  const Sample& sample = last_.sample;
  const double duration = std::max((last_.now - first_.now).value(), 1e-9);
  const auto share = [&](SignalId id) -> std::optional<double> {
    const std::optional<double> grown = delta(first_.sample, sample, id);
    return grown ? std::optional(std::clamp(*grown / duration, 0.0, 1.0)) : std::nullopt;
  };
  Conditions seen;
  seen.requested_limit = watts(sample[SignalId::requested_limit]);
  seen.enforced_limit = watts(sample[SignalId::enforced_limit]);
  seen.sm_clock = clock(sample[SignalId::sm_clock]);
  seen.memory_clock = clock(sample[SignalId::memory_clock]);
  seen.temperature_start = celsius(first_.sample[SignalId::temperature]);
  seen.temperature_end = celsius(sample[SignalId::temperature]);
  seen.fan_percent = sample[SignalId::fan];
  if (const auto& used = sample[SignalId::memory_used]) {
    seen.memory_used = Bytes(*used);
  }
  seen.power_capped_share = share(SignalId::power_capped_time);
  seen.throttled_share = share(SignalId::throttled_time);
  return seen;
}

Energy Window::energy(Notes& notes) const {
  if (counter_stopped_) {
    notes.push_back(WindowNote::energy_disagrees);
    return {};
  }
  const bool counted = last_.energy && first_.energy && !counter_fell_;
  if (counted) {
    const Joules used = *last_.energy - *first_.energy;
    if (power_is_known_ &&
        std::abs((integral_ - used).value()) > rules_.max_energy_gap * used.value()) {
      notes.push_back(WindowNote::energy_disagrees);
    }
    return {used, EnergyMethod::counter, std::nullopt};
  }
  if (!tick_ && power_is_known_) {
    return {integral_, EnergyMethod::power_integral, std::nullopt};
  }
  return {};
}

void Window::judge(Notes& notes, const Conditions& seen) const {
  const auto note_if = [&notes](bool condition, WindowNote note) {
    if (condition) {
      notes.push_back(note);
    }
  };
  // A limit that was another one from the start was never taken by the card.
  const bool taken = !is_other_limit(first_.sample[SignalId::requested_limit]);
  note_if(taken && limit_moved_, WindowNote::limit_reverted);
  note_if(!taken || (!limit_moved_ && is_other_limit(last_.sample[SignalId::enforced_limit])),
          WindowNote::not_enforced);
  note_if(seen.throttled_share.value_or(0) > rules_.max_throttled,
          WindowNote::thermal_throttle);
  note_if(seen.temperature_start && seen.temperature_end &&
              std::abs((*seen.temperature_end - *seen.temperature_start).value()) >
                  rules_.max_temperature_drift,
          WindowNote::temperature_drift);
  note_if(foreign_, WindowNote::foreign_process);
  note_if(restarted_, WindowNote::job_restarted);
  note_if(counter_fell_, WindowNote::counter_reset);
  note_if(variation() > rules_.max_variation, WindowNote::unsteady);
  note_if(seen.power_capped_share && *seen.power_capped_share <= 0.01,
          WindowNote::cap_not_binding);
}

double Window::variation() const {
  double mean = 0;
  for (const double value : step_times_) {
    mean += value / static_cast<double>(step_times_.size());
  }
  double square = 0;
  for (const double value : step_times_) {
    square += (value - mean) * (value - mean) / static_cast<double>(step_times_.size());
  }
  return std::sqrt(square) / mean;
}

}  // namespace halfwatt
