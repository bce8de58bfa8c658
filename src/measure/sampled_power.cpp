#include "measure/sampled_power.h"

#include <algorithm>
#include <cmath>

namespace halfwatt {

void SampledPower::add(Seconds now, std::optional<Watts> power) {
  if (power) {
    points_.push_back({now, *power});
  } else {
    gap_ = true;
  }
}

Watts SampledPower::power_at(Seconds time) const {
  const auto after = std::find_if(points_.begin(), points_.end(),
                                  [time](const Point& point) { return point.at >= time; });
  if (after == points_.begin()) {
    return after->power;
  }
  const Point& before = *(after - 1);
  if (after == points_.end()) {
    return before.power;
  }
  const double share = (time - before.at) / (after->at - before.at);
  return before.power + (after->power - before.power) * share;
}

Joules SampledPower::between(Seconds from, Seconds to) const {
  if (points_.empty() || to <= from) {
    return Joules(0);
  }
  Joules sum{0};
  Point last{from, power_at(from)};
  const auto go_to = [&](const Point& point) {
    sum += (last.power + point.power) / 2 * (point.at - last.at);
    last = point;
  };
  for (const Point& point : points_) {
    if (point.at > from && point.at < to) {
      go_to(point);
    }
  }
  go_to({to, power_at(to)});
  return sum;
}

std::optional<double> SampledPower::error(Seconds from, Seconds to, Seconds period) const {
  double count = 0;
  double sum = 0;
  double squares = 0;
  for (const Point& point : points_) {
    if (point.at >= from && point.at <= to) {
      ++count;
      sum += point.power.value();
      squares += point.power.value() * point.power.value();
    }
  }
  const double distinct = std::min(count, std::floor((to - from) / period));
  if (distinct < 3 || sum <= 0) {
    return std::nullopt;
  }
  const double mean = sum / count;
  const double variance = std::max(squares / count - mean * mean, 0.0);
  return 2 * std::sqrt(variance / distinct) / mean;
}

}  // namespace halfwatt
