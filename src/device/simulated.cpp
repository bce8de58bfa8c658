#include "device/simulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfwatt {

SimulatedCard::SimulatedCard(DeviceId id,
                             CardModel model,
                             const Clock& clock,
                             std::vector<Fault> faults)
    : info_{std::move(id),
            model.name,
            model.limits,
            model.energy_tick,
            std::abs(1 - model.meter_gain),
            true,
            EnergyMethod::counter,
            true,
            "",
            false},
      model_(std::move(model)),
      clock_(&clock),
      faults_(std::move(faults)),
      fired_(faults_.size(), false),
      limit_(model_.limits.preset.value_or(model_.limits.max)),
      since_(clock.now()),
      temperature_(model_.ambient) {}

const Fault* SimulatedCard::active(Fault::Kind kind) const {
  for (const Fault& fault : faults_) {
    if (fault.kind == kind && since_ >= fault.from && since_ < fault.to) {
      return &fault;
    }
  }
  return nullptr;
}

Watts SimulatedCard::draw() const {
  if (!demand_) {
    return model_.idle;
  }
  return std::min(limit_, *demand_);
}

Celsius SimulatedCard::temperature_after(Seconds elapsed) const {
  const Fault* heating = active(Fault::Kind::heating);
  const double target = model_.ambient.value() + model_.kelvin_per_watt * draw().value() +
                        (heating != nullptr ? heating->amount : 0.0);
  const double left = std::exp(-(elapsed / model_.thermal_time));
  return Celsius(target + (temperature_.value() - target) * left);
}

// Brings the state to now, with a halt wherever a fault begins or ends: nothing else changes on
// its own, so it does not matter how often anybody reads.
void SimulatedCard::advance() {
  const Seconds now = clock_->now();
  strike();
  while (since_ < now) {
    Seconds until = now;
    for (const Fault& fault : faults_) {
      for (const Seconds edge : {fault.from, fault.to}) {
        until = edge > since_ && edge < until ? edge : until;
      }
    }
    pass(until);
    strike();
  }
}

// Draw is constant until then, so the counter's value at its last tick follows from a straight
// line.
void SimulatedCard::pass(Seconds until) {
  const Seconds elapsed = until - since_;
  const Watts shown = draw() * model_.meter_gain;
  const Seconds last_tick(std::floor(until / model_.energy_tick) * model_.energy_tick.value());
  if (last_tick >= since_) {
    metered_at_tick_ = metered_ + shown * (last_tick - since_);
  }
  metered_ += shown * elapsed;
  temperature_ = temperature_after(elapsed);
  if (demand_ && *demand_ > limit_) {
    capped_ += elapsed;
  }
  if (throttles()) {
    throttled_ += elapsed;
  }
  since_ = until;
}

// What a fault does once, when it begins.
void SimulatedCard::strike() {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (fired_[i] || since_ < faults_[i].from) {
      continue;
    }
    fired_[i] = true;
    if (faults_[i].kind == Fault::Kind::counter_reset) {
      metered_ = metered_at_tick_ = Joules(0);
    }
    if (faults_[i].kind == Fault::Kind::limit_reverted) {
      limit_ = model_.limits.preset.value_or(model_.limits.max);
    }
  }
}

Error SimulatedCard::no_answer() const {
  return {ErrorKind::device,
          fmt::format("{}: the card does not answer any more", info_.id.text())};
}

Result<Sample> SimulatedCard::read() {
  advance();
  if (lost()) {
    return no_answer();
  }
  Sample sample;
  sample[SignalId::power] = draw().value() * model_.meter_gain;
  sample[SignalId::requested_limit] = limit_.value();
  sample[SignalId::enforced_limit] = limit_.value();
  sample[SignalId::temperature] = temperature_.value();
  sample[SignalId::power_capped_time] = capped_.value();
  sample[SignalId::throttled_time] = throttled_.value();
  sample[SignalId::foreign_processes] = active(Fault::Kind::foreign_process) != nullptr ? 1 : 0;
  return sample;
}

std::optional<Joules> SimulatedCard::energy() {
  advance();
  return lost() ? std::nullopt : std::optional(metered_at_tick_);
}

Watts SimulatedCard::limit() {
  advance();
  return limit_;
}

Result<void> SimulatedCard::set_limit(Watts limit) {
  advance();
  if (lost()) {
    return no_answer();
  }
  if (active(Fault::Kind::set_refused) != nullptr) {
    return Error{ErrorKind::device,
                 fmt::format("{}: no permission to set the power limit", info_.id.text())};
  }
  if (!(limit >= model_.limits.min && limit <= model_.limits.max)) {  // NaN is outside, too
    return bad_input(fmt::format("{}: {:g} W is outside the card's {:g} to {:g} W",
                                 info_.id.text(), limit.value(), model_.limits.min.value(),
                                 model_.limits.max.value()));
  }
  if (active(Fault::Kind::set_ignored) == nullptr) {
    limit_ = limit;
  }
  return {};
}

void SimulatedCard::set_demand(std::optional<Watts> demand) {
  advance();
  demand_ = demand;
}

double SimulatedCard::slowdown() {
  advance();
  const Fault* fault = active(Fault::Kind::thermal_throttle);
  return fault != nullptr ? 1 + fault->amount : 1;
}

}  // namespace halfwatt
