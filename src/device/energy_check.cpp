#include "device/energy_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfwatt {
namespace {

// Two edges make one interval; with fewer nothing can be compared.
constexpr std::size_t kFewestIntervals = 1;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

EnergyJudgement usual_judgement(bool has_counter, bool has_power, Seconds usual_tick) {
  const EnergyCheckRules rules;
  if (has_counter) {
    return {EnergyMethod::counter, usual_tick, rules.sensor_error + rules.max_gap, false,
            fmt::format("the energy counter, not checked; its tick is assumed to be {:g} ms",
                        usual_tick.value() * 1000)};
  }
  if (has_power) {
    return {EnergyMethod::power_integral, std::nullopt, rules.sensor_error + rules.max_gap,
            false, "there is no energy counter: sampled power is summed up"};
  }
  return {EnergyMethod::none, std::nullopt, std::nullopt, false,
          "it tells neither energy nor power"};
}

bool EnergyCheck::feed(Seconds now, std::optional<Joules> energy, std::optional<Watts> power) {
  if (!begun_) {
    begun_ = now;
  } else if (power && last_power_) {
    integral_ += (*power + *last_power_) / 2 * (now - last_now_);
  }
  power_is_known_ = power_is_known_ && power;
  has_counter_ = has_counter_ || energy;
  if (energy && last_energy_) {
    counter_fell_ = counter_fell_ || *energy < *last_energy_;
    if (*energy > *last_energy_) {
      see_tick(now, *energy);
    }
  }
  last_now_ = now;
  last_power_ = power;
  // A reading that failed once is no reset: the counter is compared with its last value.
  last_energy_ = energy ? energy : last_energy_;
  return now - *begun_ >= rules_.duration;
}

void EnergyCheck::see_tick(Seconds now, Joules energy) {
  if (last_tick_) {
    intervals_.push_back((now - *last_tick_).value());
  } else {
    first_tick_energy_ = energy;
    first_tick_integral_ = integral_;
  }
  last_tick_ = now;
  last_tick_energy_ = energy;
  last_tick_integral_ = integral_;
}

EnergyJudgement EnergyCheck::without_counter(std::string why) const {
  EnergyJudgement judged;
  judged.checked = true;
  judged.why = std::move(why);
  if (power_is_known_ && begun_) {
    judged.method = EnergyMethod::power_integral;
    // Nothing second to hold it against: a gap as large as would have been noticed is possible.
    judged.relative_error = rules_.sensor_error + rules_.max_gap;
    judged.why += ": sampled power is summed up";
  }
  return judged;
}

EnergyJudgement EnergyCheck::compared() const {
  EnergyJudgement judged;
  judged.method = EnergyMethod::counter;
  judged.tick = Seconds(median_of(intervals_));
  judged.checked = true;
  const double tick_ms = judged.tick->value() * 1000;
  if (!power_is_known_) {
    judged.relative_error = rules_.sensor_error + rules_.max_gap;
    judged.why = fmt::format("the energy counter, every {:.0f} ms; no power to compare it with",
                             tick_ms);
    return judged;
  }
  const Joules counted = last_tick_energy_ - first_tick_energy_;
  const Joules summed = last_tick_integral_ - first_tick_integral_;
  const double gap = std::abs((counted - summed).value());
  const double share = summed > Joules(0) ? gap / summed.value() : 1;
  const auto against = [&] {
    return fmt::format("{:.1f} J counted, {:.1f} J by {}", counted.value(), summed.value(),
                       rules_.power);
  };
  if (share > rules_.max_gap && gap > rules_.max_joules_gap.value()) {
    return without_counter(fmt::format("the energy counter is not trusted, {}", against()));
  }
  // A gap of less than 2 J may be rounding of a short check, but is what is known.
  judged.relative_error = std::max(rules_.sensor_error, std::min(share, rules_.max_gap));
  judged.why =
      fmt::format("the energy counter, every {:.0f} ms, agrees: {}", tick_ms, against());
  return judged;
}

EnergyJudgement EnergyCheck::result() const {
  if (!has_counter_) {
    return without_counter("there is no energy counter");
  }
  if (counter_fell_) {
    return without_counter("the energy counter went back");
  }
  if (intervals_.size() < kFewestIntervals) {
    return without_counter(fmt::format("the energy counter moved {} in {:g} s",
                                       last_tick_ ? "once" : "never",
                                       begun_ ? (last_now_ - *begun_).value() : 0.0));
  }
  return compared();
}

bool EnergyCheck::agrees() const {
  return power_is_known_ && result().method == EnergyMethod::counter;
}

Result<EnergyJudgement> check_energy(Clock& clock,
                                     Device& device,
                                     EnergyCheckRules rules,
                                     const std::function<bool()>& interrupted) {
  EnergyCheck check(rules);
  rules.power = "average power";
  EnergyCheck by_average(rules);
  const auto watts = [](const Sample& sample, SignalId id) {
    return sample[id] ? std::optional(Watts(*sample[id])) : std::nullopt;
  };
  while (!(interrupted && interrupted())) {
    const Result<Sample> sample = device.read_quickly();
    if (!sample) {
      return sample.error();
    }
    const std::optional<Joules> energy = device.energy();
    // Stamped after the slow call: an edge is seen when it returns.
    const Seconds now = clock.now();
    by_average.feed(now, energy, watts(*sample, SignalId::average_power));
    if (check.feed(now, energy, watts(*sample, SignalId::power))) {
      break;
    }
    clock.sleep_until(clock.now() + EnergyCheck::pause());
  }
  const EnergyJudgement judged = check.result();
  if (judged.method == EnergyMethod::power_integral && by_average.agrees()) {
    return by_average.result();
  }
  return judged;
}

}  // namespace halfwatt
