#include "measure/meter.h"

#include <utility>

namespace halfwatt {

Meter::Meter(Clock& clock,
             Device& device,
             Workload& workload,
             MeterRules rules,
             std::function<bool()> interrupted)
    : clock_(&clock),
      device_(&device),
      workload_(&workload),
      rules_(rules),
      interrupted_(std::move(interrupted)),
      begun_(clock.now()) {}

Result<Observation> Meter::observe() {
  if (interrupted_()) {
    return Error{ErrorKind::interrupted, "interrupted"};
  }
  const Result<Sample> sample = device_->read();
  if (!sample) {
    return sample.error();
  }
  return Observation{clock_->now(), workload_->work_done(), device_->energy(), *sample};
}

Result<bool> Meter::settle(const SettlingRules& rules) {
  Settling settling(rules);
  while (true) {
    const Result<Observation> seen = observe();
    if (!seen) {
      return seen.error();
    }
    const Settling::State state = settling.feed(*seen);
    if (state != Settling::State::waiting) {
      return state == Settling::State::settled;
    }
    clock_->sleep_until(clock_->now() + settling.pause());
  }
}

Result<bool> Meter::warm_up() { return settle(rules_.warm_up); }

Result<Measurement> Meter::measure(const Setting& setting, std::optional<Watts> limit) {
  const Result<bool> settled = settle(rules_.settle);
  if (!settled) {
    return settled.error();
  }
  Window window(rules_.window, device_->info().energy_tick, limit);
  while (true) {
    const Result<Observation> seen = observe();
    if (!seen) {
      return seen.error();
    }
    if (window.feed(*seen)) {
      break;
    }
    clock_->sleep_until(clock_->now() + window.pause());
  }
  Measurement measured = window.result();
  measured.setting = setting;
  measured.started = measured.started - begun_;
  measured.work.unit = workload_->info().unit;
  measured.work.items_per_step = workload_->info().items_per_step;
  measured.energy.relative_error =
      measured.energy.value ? device_->info().energy_error : std::nullopt;
  measured.numerical_state = workload_->numerical_state();
  if (device_->info().shared) {
    std::erase(measured.notes, WindowNote::foreign_process);
    measured.notes.push_back(WindowNote::shared_card);
  }
  if (!*settled && !workload_->work_done().stopped) {
    measured.notes.push_back(WindowNote::never_settled);
  }
  return measured;
}

}  // namespace halfwatt
