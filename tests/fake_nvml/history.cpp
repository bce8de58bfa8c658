#include "fake_nvml/history.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace halfwatt::fake_nvml {

namespace {

constexpr double kNsPerSecond = 1e9;

Event event_of(EventKind kind, std::uint32_t value) {
  Event event{};
  event.kind = kind;
  event.value = value;
  event.in_force = value;
  event.has_effect = 1;
  return event;
}

EventKind energy_kind(const std::string& word) {
  if (word == "stuck") {
    return EventKind::energy_stuck;
  }
  if (word == "runs") {
    return EventKind::energy_runs;
  }
  if (word == "reset") {
    return EventKind::energy_reset;
  }
  throw std::runtime_error("energy is \"" + word + "\", not stuck, runs or reset");
}

}  // namespace

std::vector<Event> events_of(const Happening& happening) {
  std::vector<Event> events;
  const auto add = [&events](EventKind kind, const std::optional<std::uint32_t>& value) {
    if (value) {
      events.push_back(event_of(kind, *value));
    }
  };
  add(EventKind::limit, happening.limit_mw);
  add(EventKind::demand, happening.demand_mw);
  add(EventKind::cap, happening.cap_mw);
  add(EventKind::persistence, happening.persistence);
  add(EventKind::extra_reasons, happening.extra_reasons);
  if (happening.energy) {
    add(energy_kind(*happening.energy), 0);
  }
  if (happening.reload.value_or(false)) {
    add(EventKind::reload, 0);
  }
  return events;
}

std::uint32_t Span::enforced_mw() const {
  return cap_mw != 0 ? std::min(cap_mw, requested_mw) : requested_mw;
}

namespace {

/// How much of the time from 0 to `time_ns` the demand of `card` was high.
std::int64_t high_ns(const Card& card, std::int64_t time_ns) {
  if (card.swing_ms == 0) {
    return time_ns;
  }
  const std::int64_t period_ns = std::int64_t{card.swing_ms} * 1'000'000;
  const std::int64_t high_of_period_ns =
      std::llround(static_cast<double>(period_ns) * card.swing_high_share);
  // Rounded down also before 0.
  const std::int64_t phase_ns = ((time_ns % period_ns) + period_ns) % period_ns;
  return (time_ns - phase_ns) / period_ns * high_of_period_ns +
         std::min(phase_ns, high_of_period_ns);
}

}  // namespace

std::uint32_t Span::wanted_mw(const Card& card) const {
  return high_ns(card, start_ns + 1) > high_ns(card, start_ns) ? demand_mw : card.swing_low_mw;
}

std::uint32_t Span::draw_mw(const Card& card) const {
  return std::min(wanted_mw(card), enforced_mw());
}

Span Span::at(std::int64_t time_ns, const Card& card) const {
  Span then = *this;
  const std::int64_t passed_ns = time_ns - start_ns;
  const std::int64_t passed_high_ns = high_ns(card, time_ns) - high_ns(card, start_ns);
  const std::int64_t passed_low_ns = passed_ns - passed_high_ns;
  then.start_ns = time_ns;
  then.energy_mj +=
      (std::min(demand_mw, enforced_mw()) * static_cast<double>(passed_high_ns) +
       std::min(card.swing_low_mw, enforced_mw()) * static_cast<double>(passed_low_ns)) /
      kNsPerSecond;
  then.capped_ns += demand_mw > enforced_mw() ? passed_high_ns : 0;
  then.capped_ns += card.swing_low_mw > enforced_mw() ? passed_low_ns : 0;
  then.sw_thermal_ns += (extra_reasons & kReasonSwThermal) != 0 ? passed_ns : 0;
  then.hw_thermal_ns += (extra_reasons & kReasonHwThermal) != 0 ? passed_ns : 0;
  then.brake_ns += (extra_reasons & kReasonBrake) != 0 ? passed_ns : 0;
  return then;
}

History::History(const Card& card, SharedState& state, std::size_t index)
    : card_(&card), state_(&state), index_(index) {
  Span first;
  first.requested_mw = card.found_mw.value_or(card.default_mw);
  first.demand_mw = card.demand_mw;
  first.cap_mw = card.cap_mw;
  first.persistence = card.persistence ? 1 : 0;
  first.counter_base_mj = static_cast<double>(card.energy_start_mj);
  spans_.push_back(first);
  for (const Happening& happening : card.happenings) {
    for (Event event : events_of(happening)) {
      event.source = Source::script;
      event.time_ns = std::llround(happening.at_s * kNsPerSecond);
      event.cause = static_cast<std::uint32_t>(script_events_.size() + 1);
      script_events_.push_back(event);
    }
  }
}

void History::read_published() {
  while (const Event* event = state_->event(index_, events_.size())) {
    events_.push_back(*event);
    apply(*event);
  }
}

void History::apply(const Event& event) {
  if (event.source == Source::script) {
    next_happening_ = event.cause;
  }
  if (event.has_effect == 0) {
    return;
  }
  const Span before = spans_.back().at(event.time_ns, *card_);
  Span now = before;
  switch (event.kind) {
    case EventKind::limit:
      now.requested_mw = event.in_force;
      revert_.reset();
      if (event.revert_at_ns != 0) {
        revert_ = event_of(EventKind::limit, before.requested_mw);
        revert_->source = Source::revert;
        revert_->time_ns = event.revert_at_ns;
      }
      break;
    case EventKind::persistence:
      now.persistence = event.value;
      break;
    case EventKind::demand:
      now.demand_mw = event.value;
      break;
    case EventKind::cap:
      now.cap_mw = event.value;
      break;
    case EventKind::extra_reasons:
      now.extra_reasons = event.value;
      break;
    case EventKind::energy_stuck:
      now.counter_stuck_mj = before.energy_mj - before.counter_zero_mj;
      break;
    case EventKind::energy_runs:
      now.counter_stuck_mj.reset();
      break;
    case EventKind::reload:
      now.requested_mw = card_->default_mw;
      now.persistence = 0;
      revert_.reset();
      [[fallthrough]];
    case EventKind::energy_reset:
      now.counter_base_mj = 0;
      now.counter_zero_mj = before.energy_mj;
      now.counter_stuck_mj.reset();
      break;
  }
  spans_.push_back(now);
}

std::optional<Event> History::due(std::int64_t now_ns) const {
  std::optional<Event> next;
  if (next_happening_ < script_events_.size()) {
    next = script_events_[next_happening_];
  }
  if (revert_ && (!next || revert_->time_ns < next->time_ns)) {
    next = revert_;
  }
  return next && next->time_ns <= now_ns ? next : std::nullopt;
}

void History::catch_up(std::int64_t now_ns) {
  read_published();
  while (std::optional<Event> event = due(now_ns)) {
    // If somebody else was faster, reading on finds what they added, and this one if it was it.
    state_->publish(index_, events_.size(), *event);
    read_published();
  }
}

void History::append(Event event) {
  event.pid = getpid();
  bool published = false;
  while (!published) {
    event.time_ns = state_->now_ns();
    catch_up(event.time_ns);
    published = state_->publish(index_, events_.size(), event);
    read_published();
  }
}

Span History::at(std::int64_t time_ns) const {
  const auto after = std::upper_bound(
      spans_.begin() + 1, spans_.end(), time_ns,
      [](std::int64_t time, const Span& span) { return time < span.start_ns; });
  return std::prev(after)->at(time_ns, *card_);
}

double History::counter_mj(std::int64_t time_ns) const {
  const std::int64_t tick_ns = std::int64_t{card_->energy_tick_ms} * 1'000'000;
  const std::int64_t read_ns = time_ns - time_ns % tick_ns;
  const Span now = at(time_ns);
  const double drawn_mj =
      now.counter_stuck_mj.value_or(at(read_ns).energy_mj - now.counter_zero_mj);
  // Between a reset and the next tick the last tick lies before the reset.
  const double counted_mj = now.counter_base_mj + std::max(0.0, drawn_mj) * card_->energy_scale;
  return std::floor(counted_mj / card_->energy_quantum_mj) * card_->energy_quantum_mj;
}

}  // namespace halfwatt::fake_nvml
