#include "measure/step_times.h"

#include <algorithm>
#include <cmath>

namespace halfwatt {

void StepTimes::see(const WorkDone& before, const WorkDone& now, Seconds begun) {
  const double steps = now.count - before.count;
  if (steps <= 0) {
    return;
  }
  if (const auto known = static_cast<double>(now.ends.size()); known >= steps) {
    Seconds begin = before.at;
    for (auto end = now.ends.end() - static_cast<std::ptrdiff_t>(steps); end != now.ends.end();
         ++end) {
      strides_.push_back(1);
      add((*end - begin).value(), 1);
      begin = *end;
    }
    return;
  }
  strides_.push_back(steps);
  // Of fifty steps that were told at once many may lie before the window, when the card had
  // another limit: that says nothing about this one.
  if (steps > 1 && before.at < begun) {
    coarse_ = true;
    return;
  }
  add((now.at - before.at).value() / steps, steps);
}

void StepTimes::add(double time, double steps) {
  times_.push_back(time);
  told_.push_back(steps);
}

std::optional<double> StepTimes::quantile(double share) const {
  const double fewest = 1 / std::min(share, 1 - share);
  const bool enough = static_cast<double>(times_.size()) >= fewest - 1e-9;
  const bool single =
      !coarse_ && std::all_of(told_.begin(), told_.end(), [](double n) { return n == 1; });
  return enough && single ? std::optional(halfwatt::quantile(times_, share)) : std::nullopt;
}

std::optional<double> StepTimes::last() const {
  return times_.empty() ? std::nullopt : std::optional(times_.back());
}

double StepTimes::steps(const Moment& from, const Moment& to, double step_time) const {
  const double usual = strides_.empty() ? 1 : std::max(halfwatt::median(strides_), 1.0);
  const auto steps_at = [&](const Moment& moment) {
    const double since = (moment.at - moment.work.at).value() / step_time;
    return moment.work.count + std::clamp(since, -usual, usual);
  };
  return steps_at(to) - steps_at(from);
}

// What is left at the end and is shorter than a stretch belongs to none.
std::vector<double> StepTimes::together(Seconds stretch) const {
  std::vector<double> times;
  double elapsed = 0;
  double steps = 0;
  for (std::size_t i = 0; i < times_.size(); ++i) {
    elapsed += times_[i] * told_[i];
    steps += told_[i];
    if (elapsed >= stretch.value()) {
      times.push_back(elapsed / steps);
      elapsed = steps = 0;
    }
  }
  return times;
}

double StepTimes::variation(Seconds stretch) const {
  const std::vector<double> times = together(stretch);
  const auto count = static_cast<double>(times.size());
  double mean = 0;
  for (const double value : times) {
    mean += value / count;
  }
  double square = 0;
  for (const double value : times) {
    square += (value - mean) * (value - mean) / count;
  }
  return mean > 0 ? std::sqrt(square) / mean : 0;
}

}  // namespace halfwatt
