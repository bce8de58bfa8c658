#include "tune/curve.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.h"

namespace halfwatt {
namespace {

constexpr std::size_t kRepeatsForDrift = 3;
// A window this many deviations off its limit's median is left out of the noise.
constexpr double kOddWindow = 4;

struct Window {
  double at;             ///< s
  double log_step_time;  ///< drift taken out
  const Measurement* measured;
};
using WindowsByX = std::map<double, std::vector<Window>>;

WindowsByX windows_that_count(const Series& series, int& rejected) {
  WindowsByX windows;
  // A series that is dead as a whole still has a shape; single dead windows do not count.
  const bool any_live =
      std::any_of(series.measurements.begin(), series.measurements.end(), [](const auto& m) {
        return m.numerical_state != NumericalState::dead &&
               m.numerical_state != NumericalState::stalled;
      });
  for (const Measurement& measured : series.measurements) {
    const auto x = measured.setting.number(series.knob.name);
    const bool void_by_note =
        std::any_of(measured.notes.begin(), measured.notes.end(), invalidates);
    const bool counts = any_live ? measured.counts() : !void_by_note;
    if (!x || !counts || measured.work.step_time <= Seconds(0)) {
      ++rejected;
      continue;
    }
    windows[*x].push_back(
        {measured.started.value(), std::log(measured.work.step_time.value()), &measured});
  }
  return windows;
}

std::vector<double> logs(const std::vector<Window>& windows) {
  std::vector<double> values;
  values.reserve(windows.size());
  for (const Window& window : windows) {
    values.push_back(window.log_step_time);
  }
  return values;
}

double theil_sen_slope(const std::vector<Window>& windows) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double elapsed = windows[i].at - windows[j].at;
      if (elapsed != 0) {
        slopes.push_back((windows[i].log_step_time - windows[j].log_step_time) / elapsed);
      }
    }
  }
  return slopes.empty() ? 0 : median(slopes);
}

// Returns the drift from the first to the last window of the reference.
double take_out_drift(WindowsByX& windows, double reference_x) {
  const std::vector<Window>& reference = windows[reference_x];
  if (reference.size() < kRepeatsForDrift) {
    return 0;
  }
  const double slope = theil_sen_slope(reference);
  const double middle = (reference.front().at + reference.back().at) / 2;
  for (auto& [x, list] : windows) {
    for (Window& window : list) {
      window.log_step_time -= slope * (window.at - middle);
    }
  }
  return slope * (reference.back().at - reference.front().at);
}

// The variance that repeats with this sum of squares and so many degrees of freedom leave
// possible at 99.9 %: the sum over the quantile of chi squared, by the first term of its
// series.
double most_variance(double square_sum, double freedom) {
  constexpr double kLeft = 0.001;
  const double half = freedom / 2;
  return square_sum / (2 * std::pow(kLeft * std::tgamma(half + 1), 1 / half));
}

std::optional<double> estimate_noise(const WindowsByX& windows) {
  double square_sum = kAssumedNoiseRepeats * kAssumedNoise * kAssumedNoise;
  double weight = kAssumedNoiseRepeats;
  bool repeated = false;
  for (const auto& [x, list] : windows) {
    if (list.size() < 2) {
      continue;
    }
    repeated = true;
    const std::vector<double> values = logs(list);
    const double centre = median(values);
    const double odd = kOddWindow * std::max(robust_deviation(values, centre), kAssumedNoise);
    double used = 0;
    double squares = 0;
    for (const double value : values) {
      if (list.size() < 3 || std::abs(value - centre) <= odd) {
        squares += (value - centre) * (value - centre);
        used += 1;
      }
    }
    square_sum += squares;
    weight += std::max(used - 1, 0.0);
  }
  if (!repeated) {
    return std::nullopt;
  }
  // One went into the drift.
  const double freedom = std::max(weight - kAssumedNoiseRepeats - 1, 1.0);
  const double seen = square_sum - kAssumedNoiseRepeats * kAssumedNoise * kAssumedNoise;
  return std::sqrt(std::min(square_sum / weight, most_variance(seen, freedom)));
}

std::optional<double> median_energy(const std::vector<Window>& windows) {
  std::vector<double> values;
  for (const Window& window : windows) {
    if (const auto joules = window.measured->joules_per_item()) {
      values.push_back(joules->value());
    }
  }
  return values.empty() ? std::nullopt : std::optional(median(values));
}

std::optional<Watts> median_draw(const std::vector<Window>& windows) {
  std::vector<double> values;
  for (const Window& window : windows) {
    const Measurement& measured = *window.measured;
    if (measured.energy.value && measured.work.duration > Seconds(0)) {
      values.push_back((*measured.energy.value / measured.work.duration).value());
    }
  }
  return values.empty() ? std::nullopt : std::optional(Watts(median(values)));
}

CurvePoint join(double x, const std::vector<Window>& windows, std::optional<double> noise) {
  CurvePoint point;
  point.x = x;
  point.windows = static_cast<int>(windows.size());
  const Work& work = windows.front().measured->work;
  point.step_time = windows.size() == 1 ? Seconds(std::exp(windows.front().log_step_time))
                                        : Seconds(std::exp(median(logs(windows))));
  point.items_per_second = work.items_per_step / point.step_time.value();
  if (noise) {
    const double reach = 1.96 * *noise / std::sqrt(static_cast<double>(windows.size()));
    point.low = point.items_per_second * std::exp(-reach);
    point.high = point.items_per_second * std::exp(reach);
  } else if (work.step_time_low && work.step_time_high) {
    point.low = work.items_per_step / work.step_time_high->value();
    point.high = work.items_per_step / work.step_time_low->value();
  }
  point.joules_per_item = median_energy(windows);
  point.draw = median_draw(windows);
  return point;
}

double nearest(const WindowsByX& windows, double wanted) {
  return std::min_element(windows.begin(), windows.end(),
                          [wanted](const auto& a, const auto& b) {
                            return std::abs(a.first - wanted) < std::abs(b.first - wanted);
                          })
      ->first;
}

double reference_x(const WindowsByX& windows, const Series& series, Reference reference) {
  if (reference == Reference::preset && series.limits && series.limits->preset) {
    return nearest(windows, series.limits->preset->value());
  }
  if (reference == Reference::peak) {
    return std::min_element(windows.begin(), windows.end(),
                            [](const auto& a, const auto& b) {
                              return median(logs(a.second)) < median(logs(b.second));
                            })
        ->first;
  }
  return windows.rbegin()->first;
}

// What the card draws at the top, over the share that it draws of a limit that binds, is what
// its load wants.
std::optional<double> demand_of(const Curve& curve) {
  const double binding = binding_ratio(curve);
  const CurvePoint& top = curve.points.back();
  const std::optional<double> drawn = curve.drawn_share(top);
  constexpr double kUndrawn = 0.01;  // meters are off by less, from limit to limit
  const bool undrawn = drawn && *drawn > 0 && *drawn < binding * (1 - kUndrawn);
  return undrawn ? std::optional(top.x * *drawn / binding) : std::nullopt;
}

}  // namespace

double binding_ratio(const Curve& curve) {
  double highest = 0;
  for (const CurvePoint& point : curve.points) {
    highest = std::max(highest, curve.drawn_share(point).value_or(0));
  }
  return highest;
}

Curve build_curve(const Series& series, Reference reference) {
  Curve curve;
  curve.cards = series.cards;
  WindowsByX windows = windows_that_count(series, curve.rejected);
  if (windows.empty()) {
    return curve;
  }
  const double hundred_percent = reference_x(windows, series, reference);
  curve.drift = take_out_drift(windows, hundred_percent);
  curve.noise = estimate_noise(windows);
  for (const auto& [x, list] : windows) {
    if (x == hundred_percent) {
      curve.reference = curve.points.size();
    }
    curve.points.push_back(join(x, list, curve.noise));
    curve.windows += static_cast<int>(list.size());
  }
  if (series.knob.unit == "W") {
    curve.demand = demand_of(curve);
  }
  return curve;
}

}  // namespace halfwatt
