#include "measure/settling.h"

#include <cmath>

namespace halfwatt {
namespace {
// Sensors show whole degrees: a slope needs a few seconds to be seen.
constexpr Seconds kSlopeBase{5};
}  // namespace

Settling::State Settling::feed(const Observation& observation) {
  if (observation.work.stopped) {
    return State::gave_up;
  }
  // After a stop the card has cooled down, and all is to be waited for again.
  if (!begun_ || observation.work.stops != block_start_->stops) {
    *this = Settling(rules_);
    begun_ = observation.now;
    block_start_ = observation.work;
  }
  close_block(observation.work);
  const bool cool = temperature_is_steady(observation);
  const Seconds waited = observation.now - *begun_;
  if (waited >= rules_.at_least && speed_is_steady_ && cool) {
    return State::settled;
  }
  return waited >= rules_.at_most ? State::gave_up : State::waiting;
}

void Settling::close_block(const WorkDone& work) {
  const double steps = work.count - block_start_->count;
  const Seconds length = work.at - block_start_->at;
  if (steps < 1 || length < rules_.block) {
    return;
  }
  const double step_time = length.value() / steps;
  speed_is_steady_ =
      last_step_time_ && std::abs(step_time / *last_step_time_ - 1) <= rules_.speed_change;
  last_step_time_ = step_time;
  block_start_ = work;
}

bool Settling::temperature_is_steady(const Observation& observation) {
  const std::optional<double> now =
      observation.sample ? (*observation.sample)[SignalId::temperature] : std::nullopt;
  if (!now) {
    return true;  // a device without a thermometer cannot be waited for
  }
  if (!temperature_) {
    temperature_ = now;
    temperature_at_ = observation.now;
  }
  const Seconds elapsed = observation.now - temperature_at_;
  if (elapsed >= kSlopeBase) {
    const double slope = std::abs(*now - *temperature_) / elapsed.value();
    temperature_is_steady_ = slope <= rules_.kelvin_per_second;
    temperature_ = now;
    temperature_at_ = observation.now;
  }
  return temperature_is_steady_;
}

Seconds Settling::pause() const { return rules_.block * 0.5; }

}  // namespace halfwatt
