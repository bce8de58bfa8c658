#include "measure/window.h"

#include <algorithm>
#include <cmath>

namespace halfwatt {
namespace {

constexpr double kReadsPerTick = 50;     // an edge is then known to 2 % of a tick
constexpr Seconds kReadsOfSteps{0.005};  // near an edge that is a step
constexpr double kLimitRounding = 0.5;   // W: cards round what is set
constexpr Seconds kSlowPeriod{1};        // of all signals, and of the counter within a window
// What is waited for is seen a little late, but rounding may make it look early.
constexpr double kEarly = 0.99;

std::optional<double> delta(const Sample& from, const Sample& to, SignalId id) {
  if (!from[id] || !to[id]) {
    return std::nullopt;
  }
  return *to[id] - *from[id];
}

std::optional<Watts> watts_of(const Sample& sample, SignalId id) {
  const auto& watts = sample[id];
  return watts ? std::optional(Watts(*watts)) : std::nullopt;
}

bool is_due(const std::optional<Seconds>& last, Seconds period, Seconds next) {
  return !last || next - *last >= period * kEarly;
}

}  // namespace

Window::Window(WindowRules rules, WindowDevice device, std::optional<Watts> limit)
    : rules_(rules), device_(device), limit_(limit) {}

bool Window::looks_for_edge() const {
  return phase_ == Phase::first_edge || phase_ == Phase::last_edge;
}

bool Window::is_in_window() const {
  return phase_ != Phase::first_edge && phase_ != Phase::over;
}

Seconds Window::sample_period() const {
  return device_.sensor_period ? *device_.sensor_period / 2 : Seconds(0);
}

std::optional<Window::Edge> Window::find_edge(const Observation& observation) const {
  const WorkDone& work = observation.work;
  if (!device_.tick) {
    // A step tells itself when it ended.
    return work.count > work_.count
               ? std::optional(Edge{{work.at, work}, std::nullopt, Seconds(0)})
               : std::nullopt;
  }
  const auto& now = observation.energy;
  // A counter that falls was reset in the middle of a tick; one seen for the first time since
  // the edge is looked for may have moved long ago.
  if (!now || !now->value || !reading_ || !reading_->value || *now->value <= *reading_->value) {
    return std::nullopt;
  }
  return Edge{{now->at(), work}, now->value, now->ended - reading_->begun};
}

bool Window::long_enough(const Observation& observation) const {
  const StepTimes::Moment now{observation.now, observation.work};
  const Seconds elapsed = now.at - first_.moment.at;
  return step_times_.are_known() && elapsed >= rules_.min_duration &&
         (!device_.tick || elapsed >= *device_.tick * static_cast<double>(rules_.min_ticks)) &&
         step_times_.steps(first_.moment, now, step_times_.median().median) >= rules_.min_steps;
}

bool Window::feed(const Observation& observation) {
  if (!begun_) {
    begun_ = true;
    first_.moment = {observation.now, observation.work};
    last_progress_ = phase_begun_ = observation.now;
    work_ = observation.work;
  }
  take_in(observation);
  advance(observation);
  now_ = observation.now;
  work_ = observation.work;
  if (observation.work.stopped) {
    stopped_ = observation.work.stopped;
    phase_ = Phase::over;
  }
  return phase_ == Phase::over;
}

void Window::advance(const Observation& observation) {
  const Phase before = phase_;
  const std::optional<Edge> edge = looks_for_edge() ? find_edge(observation) : std::nullopt;
  if (phase_ == Phase::first_edge && edge) {
    first_ = *edge;
    asleep_ = observation.asleep;
    phase_ = Phase::opening;
  } else if (phase_ == Phase::opening) {
    opening_ = latest_;
    opening_at_ = observation.now;
    phase_ = Phase::inside;
  } else if (phase_ == Phase::inside && long_enough(observation)) {
    phase_ = Phase::last_edge;
  } else if (phase_ == Phase::last_edge && edge) {
    last_ = *edge;
    phase_ = Phase::closing;
  } else if (phase_ == Phase::closing) {
    phase_ = Phase::over;
  }
  reading_ = observation.energy ? observation.energy : reading_;
  if (phase_ != before) {
    phase_begun_ = observation.now;
    reading_ = std::nullopt;
  }
  lose_patience(observation.now);
}

void Window::lose_patience(Seconds now) {
  if (phase_ == Phase::over) {
    return;
  }
  stuck_ = now - last_progress_ > rules_.patience;
  counter_stopped_ = device_.tick && looks_for_edge() && now - phase_begun_ > rules_.patience;
  if (stuck_ || counter_stopped_) {
    phase_ = Phase::over;
  }
}

void Window::take_in(const Observation& observation) {
  if (observation.sample) {
    take_in_sample(*observation.sample, observation.now);
  }
  if (observation.energy) {
    take_in_reading(*observation.energy);
  }
  take_in_work(observation);
}

void Window::take_in_reading(const EnergyReading& reading) {
  counter_is_silent_ = !reading.value;
  counter_at_ = reading.ended;
  if (reading.value) {
    counter_fell_ = counter_fell_ || (is_in_window() && counter_ && *reading.value < *counter_);
    counter_ = reading.value;
  }
}

void Window::take_in_sample(const Sample& sample, Seconds now) {
  for (const Signal& signal : kSignals) {
    const auto& value = sample[signal.id];
    latest_[signal.id] = value ? value : latest_[signal.id];
  }
  // Called first of all, so that this still says what was asked for.
  if (wants().sample == SampleDetail::full) {
    latest_full_at_ = now;
  }
  latest_at_ = now;
  power_.add(now, watts_of(sample, SignalId::power));
  average_power_.add(now, watts_of(sample, SignalId::average_power));
  if (is_in_window()) {
    foreign_ = foreign_ || sample[SignalId::foreign_processes].value_or(0) > 0;
    limit_moved_ = limit_moved_ || is_other_limit(sample[SignalId::requested_limit]);
  }
}

void Window::take_in_work(const Observation& observation) {
  const WorkDone& work = observation.work;
  const bool stopped = work.stops != work_.stops;
  if (work.count > work_.count || stopped) {
    last_progress_ = observation.now;
  }
  phase_begun_ = stopped ? observation.now : phase_begun_;
  if (is_in_window()) {
    restarted_ = restarted_ || work.starts != work_.starts;
    progress_changed_ = progress_changed_ || work.changes != work_.changes;
    suspended_ = suspended_ || stopped || observation.asleep - asleep_ > rules_.max_sleep;
    if (phase_ != Phase::closing) {
      step_times_.see(work_, work, first_.moment.at);
    }
  }
}

bool Window::is_other_limit(const std::optional<double>& watts) const {
  return watts && limit_ && std::abs(*watts - limit_->value()) > kLimitRounding;
}

Seconds Window::pause() const {
  if (phase_ == Phase::opening || phase_ == Phase::closing) {
    return Seconds(0);
  }
  if (looks_for_edge()) {
    // The first look is what the others are held against.
    const Seconds between = device_.tick ? *device_.tick / kReadsPerTick : kReadsOfSteps;
    return device_.tick && !reading_ ? Seconds(0) : between;
  }
  // About once a step, so that single steps are seen, within what a sampler can do; and not
  // past the end, so that no more is measured than was asked for.
  const double step = step_times_.last().value_or(0.1);
  const double left = rules_.min_steps - step_times_.steps(first_.moment, {now_, work_}, step);
  const Seconds next(std::clamp(left > 0 ? std::min(1.0, left) * step : step, 0.05, 1.0));
  return device_.sensor_period ? std::min(next, sample_period()) : next;
}

Wanted Window::wants() const {
  const Seconds next = now_ + pause();
  const bool looks_for_tick = device_.tick && looks_for_edge();
  // A tick is found before anything else is due, unless the counter has stopped.
  const bool full_is_due =
      is_due(latest_full_at_, kSlowPeriod, next) &&
      (!looks_for_tick || !latest_full_at_ || is_due(phase_begun_, kSlowPeriod, next));
  Wanted wanted;
  const bool behind_edge = phase_ == Phase::opening || phase_ == Phase::closing;
  // A counter that is silent may be that of a lost card, which only a sample tells.
  if (behind_edge || counter_is_silent_ || full_is_due) {
    wanted.sample = SampleDetail::full;
  } else if (is_due(latest_at_, sample_period(), next) && !looks_for_tick) {
    wanted.sample = SampleDetail::quick;
  }
  wanted.energy = device_.tick && !behind_edge &&
                  (looks_for_tick || is_due(counter_at_, kSlowPeriod, next));
  return wanted;
}

Measurement Window::result() const {
  const bool has_edges = last_.moment.at > first_.moment.at;
  const StepTimes::Moment end = has_edges ? last_.moment : StepTimes::Moment{now_, work_};
  Measurement measured;
  measured.started = first_.moment.at;
  measured.work.duration = end.at - first_.moment.at;
  measured.conditions = conditions();
  if (stopped_) {
    measured.notes.push_back(*stopped_);
    return measured;
  }
  if (stuck_ || !step_times_.are_known()) {
    measured.notes.push_back(counter_stopped_ && !stuck_ ? WindowNote::energy_disagrees
                                                         : WindowNote::no_progress);
    return measured;
  }
  const MedianInterval step = step_times_.median();
  measured.work.steps = step_times_.steps(first_.moment, end, step.median);
  measured.work.step_time = Seconds(step.median);
  if (rules_.mean_step_time && measured.work.steps > 0) {
    measured.work.step_time = measured.work.duration / measured.work.steps;
  } else if (step.low && step.high) {
    measured.work.step_time_low = Seconds(*step.low);
    measured.work.step_time_high = Seconds(*step.high);
  }
  const auto seconds = [](std::optional<double> value) {
    return value ? std::optional(Seconds(*value)) : std::nullopt;
  };
  measured.work.step_time_p05 = seconds(step_times_.quantile(0.05));
  measured.work.step_time_p95 = seconds(step_times_.quantile(0.95));
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
  const Sample& sample = latest_;
  // Between the samples behind the two edges, not between the edges.
  const double duration = std::max((latest_at_.value_or(now_) - opening_at_).value(), 1e-9);
  const auto share = [&](SignalId id) -> std::optional<double> {
    const std::optional<double> grown = delta(opening_, sample, id);
    return grown ? std::optional(std::clamp(*grown / duration, 0.0, 1.0)) : std::nullopt;
  };
  Conditions seen;
  seen.requested_limit = watts(sample[SignalId::requested_limit]);
  seen.enforced_limit = watts(sample[SignalId::enforced_limit]);
  seen.sm_clock = clock(sample[SignalId::sm_clock]);
  seen.memory_clock = clock(sample[SignalId::memory_clock]);
  seen.temperature_start = celsius(opening_[SignalId::temperature]);
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
  if (device_.tick) {
    return counted(notes);
  }
  if (!power_.is_known()) {
    return {};
  }
  const Seconds from = first_.moment.at;
  const Seconds to = last_.moment.at;
  return {power_.between(from, to), EnergyMethod::power_integral, std::nullopt,
          power_.error(from, to, device_.sensor_period.value_or(sample_period()))};
}

bool Window::disagrees(const SampledPower& power, Joules used) const {
  const Joules sum = power.between(first_.moment.at, last_.moment.at);
  return std::abs((sum - used).value()) > rules_.max_energy_gap * used.value();
}

Energy Window::counted(Notes& notes) const {
  if (!last_.energy || !first_.energy || counter_fell_) {
    return {};
  }
  const Joules used = *last_.energy - *first_.energy;
  // Instant power of a load that keeps step with the sensor is that of one phase: where the
  // device's average agrees with the counter there is nothing wrong with either.
  const bool average_agrees = average_power_.is_known() && !disagrees(average_power_, used);
  if (power_.is_known() && disagrees(power_, used) && !average_agrees) {
    notes.push_back(WindowNote::energy_disagrees);
  }
  // The joules are those between two ticks to the last one; what is not known to the last one
  // is when these ticks were. (A window that ended anywhere would be off by two ticks.)
  const double error =
      (first_.uncertain + last_.uncertain) / (last_.moment.at - first_.moment.at);
  return {used, EnergyMethod::counter, std::nullopt, error};
}

void Window::judge(Notes& notes, const Conditions& seen) const {
  const auto note_if = [&notes](bool condition, WindowNote note) {
    if (condition) {
      notes.push_back(note);
    }
  };
  // A limit that was another one from the start was never taken by the card.
  const bool taken = !is_other_limit(opening_[SignalId::requested_limit]);
  note_if(taken && limit_moved_, WindowNote::limit_reverted);
  note_if(!taken || (!limit_moved_ && is_other_limit(latest_[SignalId::enforced_limit])),
          WindowNote::not_enforced);
  note_if(seen.throttled_share.value_or(0) > rules_.max_throttled,
          WindowNote::thermal_throttle);
  note_if(seen.temperature_start && seen.temperature_end &&
              std::abs((*seen.temperature_end - *seen.temperature_start).value()) >
                  rules_.max_temperature_drift,
          WindowNote::temperature_drift);
  note_if(foreign_, WindowNote::foreign_process);
  note_if(restarted_, WindowNote::job_restarted);
  note_if(suspended_, WindowNote::suspended);
  note_if(progress_changed_, WindowNote::progress_changed);
  note_if(counter_fell_, WindowNote::counter_reset);
  note_if(step_times_.variation(rules_.stretch) > rules_.max_variation, WindowNote::unsteady);
  note_if(seen.power_capped_share && *seen.power_capped_share <= 0.01,
          WindowNote::cap_not_binding);
}

}  // namespace halfwatt
