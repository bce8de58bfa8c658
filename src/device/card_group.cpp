#include "device/card_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "device/energy_check.h"

namespace halfwatt {
namespace {

/// How the values of several cards become one.
enum class Merge { sum, lowest, highest, bits, farthest, growth };

constexpr Merge merge_of(SignalId id) {
  switch (id) {
    case SignalId::power:
    case SignalId::average_power:
    case SignalId::energy:
    case SignalId::memory_used:
    case SignalId::memory_total:
    case SignalId::pcie_sent:
    case SignalId::pcie_received:
    case SignalId::ecc_corrected:
    case SignalId::ecc_uncorrected:
    case SignalId::foreign_processes:
      return Merge::sum;
    case SignalId::requested_limit:
    case SignalId::default_limit:
    case SignalId::max_limit:
    case SignalId::sm_clock:
    case SignalId::memory_clock:
    case SignalId::graphics_clock:
    case SignalId::temperature_margin:
    case SignalId::gpu_utilisation:
    case SignalId::memory_utilisation:
    case SignalId::pcie_generation:
    case SignalId::pcie_width:
      return Merge::lowest;
    case SignalId::min_limit:
    case SignalId::temperature:
    case SignalId::memory_temperature:
    case SignalId::fan:
    case SignalId::recovery_action:
      return Merge::highest;
    case SignalId::event_reasons:
      return Merge::bits;
    case SignalId::enforced_limit:
      return Merge::farthest;
    case SignalId::power_capped_time:
    case SignalId::throttled_time:
    case SignalId::thermal_time:
    case SignalId::board_limit_time:
    case SignalId::reliability_time:
    case SignalId::software_thermal_time:
    case SignalId::hardware_thermal_time:
    case SignalId::power_brake_time:
      return Merge::growth;
  }
  return Merge::lowest;
}

// The values of one signal; empty where a card does not tell it.
std::vector<double> values_of(SignalId id, const std::vector<Sample>& samples) {
  std::vector<double> values;
  for (const Sample& each : samples) {
    if (!each[id]) {
      return {};
    }
    values.push_back(*each[id]);
  }
  return values;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double each : values) {
    sum += each;
  }
  return sum;
}

double bits_of(const std::vector<double>& values) {
  std::uint64_t bits = 0;
  for (const double each : values) {
    bits |= static_cast<std::uint64_t>(each);
  }
  return static_cast<double>(bits);
}

double farthest_from(double middle, const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end(), [middle](double a, double b) {
    return std::abs(a - middle) < std::abs(b - middle);
  });
}

bool same_range(const std::optional<LimitRange>& a, const std::optional<LimitRange>& b) {
  return a && b && a->min == b->min && a->max == b->max;
}

std::string range_text(const std::optional<LimitRange>& range) {
  return range ? fmt::format("{:g}-{:g} W", range->min.value(), range->max.value())
               : std::string("no limit that is told");
}

// "2 x NVIDIA A100, 1 x NVIDIA H100".
std::string name_of(const std::vector<std::unique_ptr<Device>>& cards) {
  std::vector<std::pair<std::string, int>> counts;
  for (const auto& card : cards) {
    const std::string& name = card->info().name.empty() ? "unknown card" : card->info().name;
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& each) { return each.first == name; });
    if (known != counts.end()) {
      ++known->second;
    } else {
      counts.emplace_back(name, 1);
    }
  }
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

// In order, whatever the order in which they were named: a record is resumed by this text.
DeviceId id_of(const std::vector<std::unique_ptr<Device>>& cards) {
  std::vector<std::string> names;
  for (const auto& card : cards) {
    names.push_back(card->info().id.text());
  }
  std::sort(names.begin(), names.end());
  return {DeviceId::Kind::gpu_uuid, fmt::format("{}", fmt::join(names, ","))};
}

}  // namespace

CardGroup::CardGroup(std::vector<std::unique_ptr<Device>> cards)
    : cards_(std::move(cards)), before_(cards_.size()), counters_(cards_.size()) {}

Result<std::unique_ptr<CardGroup>> CardGroup::make(std::vector<std::unique_ptr<Device>> cards,
                                                   GroupUse use) {
  HALFWATT_CHECK(!cards.empty(), "a group without cards");
  // Private constructor: make_unique cannot.
  std::unique_ptr<CardGroup> group(new CardGroup(std::move(cards)));
  if (use == GroupUse::limited) {
    if (const Result<void> fine = group->check_limits(); !fine) {
      return fine.error();
    }
  }
  group->describe();
  return group;
}

Result<void> CardGroup::check_limits() const {
  const DeviceInfo& first = cards_.front()->info();
  for (const auto& card : cards_) {
    const DeviceInfo& other = card->info();
    if (&other != &first && !same_range(first.limits, other.limits)) {
      return bad_input(fmt::format(
          "{} takes {} and {} takes {}, and one limit is set for all cards of a job; needed "
          "cards of one range in --device, or --measure-only",
          first.id.text(), range_text(first.limits), other.id.text(),
          range_text(other.limits)));
    }
  }
  return {};
}

void CardGroup::describe() {
  const DeviceInfo& first = cards_.front()->info();
  info_ = first;
  info_.id = id_of(cards_);
  info_.name = name_of(cards_);
  info_.pci.clear();
  for (std::size_t i = 1; i < cards_.size(); ++i) {
    const DeviceInfo& other = cards_[i]->info();
    if (!same_range(info_.limits, other.limits)) {
      info_.limits.reset();
    } else if (info_.limits->preset != other.limits->preset) {
      info_.limits->preset.reset();
    }
    // The methods stand in their order, best first.
    info_.energy_method = std::max(info_.energy_method, other.energy_method);
    if (other.energy_tick > info_.energy_tick) {
      info_.energy_tick = other.energy_tick;
      edge_card_ = i;
    }
    info_.energy_error = info_.energy_error && other.energy_error
                             ? std::optional(std::max(*info_.energy_error, *other.energy_error))
                             : std::nullopt;
    info_.energy_is_checked = info_.energy_is_checked && other.energy_is_checked;
    info_.simulated = info_.simulated || other.simulated;
    info_.sliced = info_.sliced || other.sliced;
    info_.shared = info_.shared || other.shared;
  }
  if (info_.energy_method != EnergyMethod::counter) {
    info_.energy_tick.reset();
  }
}

Result<Sample> CardGroup::read() { return read_each(&Device::read); }
Result<Sample> CardGroup::read_quickly() { return read_each(&Device::read_quickly); }

Result<Sample> CardGroup::read_each(Result<Sample> (Device::*how)()) {
  std::vector<Sample> samples;
  for (const auto& card : cards_) {
    Result<Sample> sample = (card.get()->*how)();
    if (!sample) {
      return sample.error();
    }
    samples.push_back(std::move(*sample));
  }
  return merge(samples);
}

Sample CardGroup::merge(const std::vector<Sample>& samples) {
  Sample merged;
  for (const Signal& signal : kSignals) {
    const Merge how = merge_of(signal.id);
    const std::vector<double> values = values_of(signal.id, samples);
    std::optional<double>& into = merged[signal.id];
    if (how == Merge::growth) {
      into = grow(signal.id, samples);
    } else if (values.empty()) {
      continue;
    } else if (how == Merge::sum) {
      into = sum_of(values);
    } else if (how == Merge::highest) {
      into = *std::max_element(values.begin(), values.end());
    } else if (how == Merge::bits) {
      into = bits_of(values);
    } else {
      into = *std::min_element(values.begin(), values.end());
    }
    if (how == Merge::farthest && !values.empty()) {
      // Stands behind requested_limit in the table of signals.
      into = farthest_from(merged[SignalId::requested_limit].value_or(*into), values);
    }
  }
  return merged;
}

// The largest of all cards' times would hide a card that is slowed now behind one that once
// was.
std::optional<double> CardGroup::grow(SignalId id, const std::vector<Sample>& samples) {
  double growth = 0;
  bool known = true;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::optional<double>& now = samples[i][id];
    std::optional<double>& before = before_[i][id];
    growth = now && before ? std::max(growth, *now - *before) : growth;
    before = now ? now : before;
    known = known && now;
  }
  if (!known) {
    return std::nullopt;
  }
  grown_[id] = grown_[id].value_or(0) + growth;
  return grown_[id];
}

// What was found of the sum holds for its parts: which of them is wrong is not known.
void CardGroup::take(const EnergyJudgement& judgement) {
  for (const auto& card : cards_) {
    card->take(judgement);
  }
  info_.energy_method = judgement.method;
  info_.energy_tick = judgement.tick;
  info_.energy_error = judgement.relative_error;
  info_.energy_is_checked = judgement.checked;
}

std::optional<Joules> CardGroup::energy() {
  if (info_.energy_method != EnergyMethod::counter) {
    return std::nullopt;
  }
  const std::optional<Joules> now = cards_[edge_card_]->energy();
  if (total_ && now == counters_[edge_card_]) {
    return total_;
  }
  return sum_up(now);
}

std::optional<Joules> CardGroup::sum_up(const std::optional<Joules>& of_edge_card) {
  Joules sum{0};
  bool known = true;
  bool fell = false;
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    const std::optional<Joules> now = i == edge_card_ ? of_edge_card : cards_[i]->energy();
    known = known && now;
    fell = fell || (now && counters_[i] && *now < *counters_[i]);
    counters_[i] = now ? now : counters_[i];
    sum += now.value_or(Joules(0));
  }
  // One counter that was reset may hide in the sum: once, the sum falls by a joule as well.
  if (fell && total_ && sum >= *total_) {
    sum = *total_ - Joules(1);
  }
  total_ = known ? std::optional(sum) : std::nullopt;
  return total_;
}

}  // namespace halfwatt
