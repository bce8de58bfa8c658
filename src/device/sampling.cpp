#include "device/sampling.h"

#include <utility>

namespace halfwatt {
namespace {

// Whether a deadline has come; moves it on, without catching up on what was missed.
bool take(std::optional<Seconds>& next, Seconds now, Seconds period, double share) {
  if (!next) {
    next = now + period * (1 + share);
    return true;
  }
  // A thread wakes a little late, never early; rounding may still make it look so.
  constexpr Seconds kRounding{1e-6};
  if (now + kRounding < *next) {
    return false;
  }
  *next += period;
  if (*next <= now) {
    *next = now + period;
  }
  return true;
}

}  // namespace

Due SamplingPlan::due(Seconds now) {
  return {take(next_full_, now, rules_.full_period, share_),
          take(next_energy_, now, rules_.energy_period, share_)};
}

SampleStore::SampleStore(std::size_t devices, const SamplingRules& rules, Seconds now)
    : rules_(rules),
      begun_(now),
      channels_(devices, Channel{SampleRing(rules.kept), std::nullopt, std::nullopt}) {}

void SampleStore::call_begins(std::size_t device, Seconds now) {
  const std::lock_guard lock(mutex_);
  channels_.at(device).call_since = now;
}

void SampleStore::add(std::size_t device, const StampedSample& sample) {
  const std::lock_guard lock(mutex_);
  Channel& channel = channels_.at(device);
  channel.ring.push(sample);
  channel.call_since = std::nullopt;
  channel.error = std::nullopt;
}

void SampleStore::fail(std::size_t device, Error error) {
  const std::lock_guard lock(mutex_);
  Channel& channel = channels_.at(device);
  channel.call_since = std::nullopt;
  channel.error = std::move(error);
}

SamplingState SampleStore::state(std::size_t device, Seconds now) const {
  const std::lock_guard lock(mutex_);
  const Channel& channel = channels_.at(device);
  SamplingState state;
  Seconds last = begun_;
  if (channel.ring.size() > 0) {
    state.latest = channel.ring[channel.ring.size() - 1];
    last = state.latest->at;
  }
  if (now - last > rules_.stale_after) {
    state.stale_since = last;
  }
  state.blocked = channel.call_since && now - *channel.call_since > rules_.stale_after;
  state.error = channel.error;
  return state;
}

std::vector<StampedSample> SampleStore::since(std::size_t device, Seconds time) const {
  std::vector<StampedSample> samples;
  samples.reserve(rules_.kept);  // before the lock
  const std::lock_guard lock(mutex_);
  const SampleRing& ring = channels_.at(device).ring;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    if (ring[i].at > time) {
      samples.push_back(ring[i]);
    }
  }
  return samples;
}

void Sampling::round(const Clock& clock, SampleStore& store, std::size_t index) {
  const Seconds begun = clock.now();
  store.call_begins(index, begun);
  const Due due = plan_.due(begun);
  Result<Sample> sample = due.full || !full_ ? device_->read() : device_->read_quickly();
  if (!sample) {
    full_ = std::nullopt;
    store.fail(index, sample.error());
    return;
  }
  if (due.full || !full_) {
    full_ = *sample;
  } else {
    for (const Signal& signal : kSignals) {
      auto& value = (*sample)[signal.id];
      value = value ? value : (*full_)[signal.id];
    }
  }
  StampedSample stamped{clock.now(), std::move(*sample)};
  if (due.energy) {
    if (const auto energy = device_->energy()) {
      stamped.sample[SignalId::energy] = energy->value();
      stamped.at = clock.now();
    }
  }
  store.add(index, stamped);
}

}  // namespace halfwatt
