#include "measure/meter.h"

#include <utility>

#include "device/energy_check.h"

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

// The counter first: at an edge nothing may come before it.
Result<Observation> Meter::observe(const Wanted& wanted) {
  if (interrupted_()) {
    return Error{ErrorKind::interrupted, "interrupted"};
  }
  Observation seen;
  if (wanted.energy) {
    const Seconds begun = clock_->now();
    const std::optional<Joules> value = device_->energy();
    seen.energy = EnergyReading{value, begun, clock_->now()};
  }
  if (wanted.sample != SampleDetail::none) {
    Result<Sample> sample =
        wanted.sample == SampleDetail::full ? device_->read() : device_->read_quickly();
    if (!sample) {
      return sample.error();
    }
    seen.sample = *sample;
  }
  seen.work = workload_->work_done();
  seen.now = clock_->now();
  seen.asleep = clock_->asleep();
  return Result<Observation>(std::move(seen));
}

Result<bool> Meter::settle(const SettlingRules& rules) {
  Settling settling(rules);
  while (true) {
    const Result<Observation> seen = observe(settling.wants());
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

Result<void> Meter::check_energy() {
  energy_is_checked_ = true;
  if (device_->info().energy_is_checked) {
    return {};
  }
  const Result<EnergyJudgement> judged =
      halfwatt::check_energy(*clock_, *device_, {}, interrupted_);
  if (!judged) {
    return judged.error();
  }
  if (interrupted_()) {
    return Error{ErrorKind::interrupted, "interrupted"};
  }
  device_->take(*judged);
  return {};
}

Result<Measurement> Meter::run_window(std::optional<Watts> limit) {
  const DeviceInfo& info = device_->info();
  Window window(rules_.window, {info.energy_tick, info.sensor_period}, limit);
  while (true) {
    const Result<Observation> seen = observe(window.wants());
    if (!seen) {
      return seen.error();
    }
    if (window.feed(*seen)) {
      return window.result();
    }
    clock_->sleep_until(clock_->now() + window.pause());
  }
}

Result<Measurement> Meter::measure(const Setting& setting, std::optional<Watts> limit) {
  const Result<bool> settled = settle(rules_.settle);
  if (!settled) {
    return settled.error();
  }
  // Not where the job cannot run under this setting: an idle card proves little.
  if (!energy_is_checked_ && !workload_->work_done().stopped) {
    if (const Result<void> checked = check_energy(); !checked) {
      return checked.error();
    }
  }
  Result<Measurement> measured = run_window(limit);
  if (!measured) {
    return measured;
  }
  measured->setting = setting;
  measured->started = measured->started - begun_;
  measured->work.unit = workload_->info().unit;
  measured->work.items_per_step = workload_->info().items_per_step;
  measured->energy.relative_error =
      measured->energy.value ? device_->info().energy_error : std::nullopt;
  measured->conditions.resident_peak = workload_->work_done().resident_peak;
  measured->numerical_state = workload_->numerical_state();
  measured->predicted = workload_->predict(setting);
  if (device_->info().shared) {
    std::erase(measured->notes, WindowNote::foreign_process);
    measured->notes.push_back(WindowNote::shared_card);
  }
  if (!*settled && !workload_->work_done().stopped) {
    measured->notes.push_back(WindowNote::never_settled);
  }
  return measured;
}

}  // namespace halfwatt
