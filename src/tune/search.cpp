#include "tune/search.h"

#include <algorithm>
#include <cmath>

namespace halfwatt {
namespace {

constexpr int kReferenceEvery = 5;

// 0..n-1 in bit-reversed order: 0, n/2, n/4, 3n/4, ...
std::vector<std::size_t> spread_order(std::size_t n) {
  std::vector<std::size_t> order;
  std::size_t bits = 0;
  while ((std::size_t{1} << bits) < n) {
    ++bits;
  }
  for (std::size_t i = 0; i < (std::size_t{1} << bits); ++i) {
    std::size_t reversed = 0;
    for (std::size_t bit = 0; bit < bits; ++bit) {
      reversed |= ((i >> bit) & 1U) << (bits - 1 - bit);
    }
    if (reversed < n) {
      order.push_back(reversed);
    }
  }
  return order;
}

Setting setting_of(const Knob& knob, double x) {
  Setting setting;
  setting.set(knob.name, x);
  return setting;
}

}  // namespace

std::vector<double> LimitSpace::values() const {
  constexpr double kRounding = 1e-9;
  const auto steps = static_cast<std::size_t>(std::ceil((max - min) / step - kRounding));
  std::vector<double> all;
  all.reserve(steps + 1);
  for (std::size_t i = 0; i < steps; ++i) {
    all.push_back(max - static_cast<double>(i) * step);
  }
  all.push_back(min);
  return all;
}

Setting LimitSpace::setting(double x) const { return setting_of(knob, x); }

ListSearch::ListSearch(Knob knob, std::vector<double> values, int repeats, bool interleaved)
    : knob_(std::move(knob)) {
  for (int repeat = 0; repeat < repeats; ++repeat) {
    if (!interleaved) {
      order_.insert(order_.end(), values.begin(), values.end());
      continue;
    }
    for (const std::size_t i : spread_order(values.size())) {
      order_.push_back(values[i]);
    }
  }
}

// The k-th window of a value serves its k-th place in the order, so that reference windows put
// in between, and windows of an earlier session, are counted right.
std::optional<Setting> ListSearch::next(std::span<const Measurement> measured) const {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const double x = order_[i];
    const auto wanted =
        std::count(order_.begin(), order_.begin() + static_cast<long>(i) + 1, x);
    const auto done = std::count_if(measured.begin(), measured.end(), [&](const auto& m) {
      return m.settled() && m.setting.number(knob_.name) == x;
    });
    if (done < wanted) {
      return setting_of(knob_, x);
    }
  }
  return std::nullopt;
}

std::optional<Setting> RepeatedSearch::next(std::span<const Measurement> measured) const {
  const auto settled = std::count_if(measured.begin(), measured.end(),
                                     [](const Measurement& each) { return each.settled(); });
  return settled < repeats_ ? std::optional(Setting{}) : std::nullopt;
}

ReferencedSearch::ReferencedSearch(Knob knob, double reference, std::unique_ptr<Search> inner)
    : knob_(std::move(knob)), reference_(reference), inner_(std::move(inner)) {}

std::optional<Setting> ReferencedSearch::next(std::span<const Measurement> measured) const {
  const auto is_reference = [this](const Measurement& m) {
    return m.settled() && m.setting.number(knob_.name) == reference_;
  };
  int since = 0;
  for (auto it = measured.rbegin(); it != measured.rend() && !is_reference(*it); ++it) {
    since += it->settled() ? 1 : 0;
  }
  if (std::none_of(measured.begin(), measured.end(), is_reference) ||
      since == kReferenceEvery - 1) {
    return setting_of(knob_, reference_);
  }
  if (auto wanted = inner_->next(measured)) {
    return wanted;
  }
  return since > 0 ? std::optional(setting_of(knob_, reference_)) : std::nullopt;
}

int ReferencedSearch::expected_windows() const {
  const int others = inner_->expected_windows();
  return 1 + others + (others + kReferenceEvery - 2) / (kReferenceEvery - 1);
}

}  // namespace halfwatt
