#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "measure/measurement.h"

namespace halfwatt {

/// Decides where to measure next from all that was measured so far. Pure: the same measurements
/// give the same answer, so an interrupted run can go on and a test can script the data.
class Search {
 public:
  virtual ~Search() = default;
  /// The next setting, or nullopt when the question is answered or the budget spent.
  virtual std::optional<Setting> next(std::span<const Measurement> measured) const = 0;
  /// How many windows it expects to need in all, for a progress line.
  virtual int expected_windows() const = 0;
};

/// The values a numeric knob may take.
struct LimitSpace {
  Knob knob = power_limit_knob();
  double min = 0;
  double max = 0;
  double step = 10;

  /// All values from max downwards in steps, and min.
  std::vector<double> values() const;
  Setting setting(double x) const;
};

/// A given list of values, each `repeats` times, in an order that keeps slow drift from looking
/// like an effect of the knob: every next value lies far from the last (bit reversal).
class ListSearch final : public Search {
 public:
  ListSearch(Knob knob, std::vector<double> values, int repeats, bool interleaved);
  std::optional<Setting> next(std::span<const Measurement> measured) const override;
  int expected_windows() const override { return static_cast<int>(order_.size()); }

 private:
  Knob knob_;
  std::vector<double> order_;
};

/// The same setting so many times, whatever it is: what GridSearch puts its axes around where
/// no limit is searched.
class RepeatedSearch final : public Search {
 public:
  explicit RepeatedSearch(int repeats) : repeats_(repeats) {}
  std::optional<Setting> next(std::span<const Measurement> measured) const override;
  int expected_windows() const override { return repeats_; }

 private:
  int repeats_;
};

/// Measures the reference value first, as every fifth window, and last; leaves the rest to
/// another search.
class ReferencedSearch final : public Search {
 public:
  ReferencedSearch(Knob knob, double reference, std::unique_ptr<Search> inner);
  std::optional<Setting> next(std::span<const Measurement> measured) const override;
  int expected_windows() const override;

 private:
  Knob knob_;
  double reference_;
  std::unique_ptr<Search> inner_;
};

}  // namespace halfwatt
