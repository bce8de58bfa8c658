#include "tune/limit_search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tune/cheaper_limit.h"
#include "tune/shares.h"

namespace halfwatt {
namespace {

// A limit that nobody measured is taken to miss a share without looking when the fit is this
// many deviations sure of it.
constexpr double kSure = 3;
// Up to here the doubt comes before the last percent of energy, beyond it behind.
constexpr double kQuiteSure = 1.5;
// The first limit after the top, as a share of the range: below most shares, so that it and
// the top hold the curve's bend between them, and above most least energies.
constexpr double kOpening = 0.33;
// Energy is looked for once the shares have given the curve a shape.
constexpr std::size_t kPointsBeforeEnergy = 7;
// Windows on a short grid, as a share of its values; a search needs a few in any case.
constexpr double kMostOfGrid = 0.6;
constexpr int kFewestWindows = 9;
// Two windows of one limit this far apart need a third to say which is odd.
constexpr double kDisagreement = 0.01;
// A point is suspect if it lies this many deviations off the fit through all others.
constexpr double kSuspect = 4.0;

/// What is known so far, as the search needs it.
class Knowledge {
 public:
  Knowledge(const LimitSpace& space, double reference, std::span<const Measurement> measured)
      : space_(space) {
    Series series;
    series.knob = space.knob;
    series.measurements.assign(measured.begin(), measured.end());
    for (const Measurement& each : measured) {
      if (const auto x = each.setting.number(space.knob.name); x && each.settled()) {
        tried.insert(*x);
      }
    }
    curve = build_curve(series, Reference::top);
    if (!curve.noise) {
      curve.noise = kAssumedNoise;
    }
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      curve.reference = curve.points[i].x == reference ? i : curve.reference;
    }
  }
  bool was_tried(double x) const { return tried.count(x) > 0; }
  const CurvePoint* point(double x) const {
    for (const CurvePoint& each : curve.points) {
      if (each.x == x) {
        return &each;
      }
    }
    return nullptr;
  }
  const LimitSpace& space() const { return space_; }
  double reference() const { return curve.points[curve.reference].x; }

  Curve curve;
  std::set<double> tried;

 private:
  const LimitSpace& space_;
};

double on_grid(const LimitSpace& space, double share) {
  const double wanted = space.min + share * (space.max - space.min);
  const double steps = std::round((space.max - wanted) / space.step);
  return std::max(space.max - steps * space.step, space.min);
}

std::optional<double> opening(const Knowledge& known) {
  const double x = on_grid(known.space(), kOpening);
  return known.was_tried(x) ? std::nullopt : std::optional(x);
}

/// A limit that would help to place a share, and how open the question is.
struct Question {
  double x = 0;
  double uncertainty = 0;
  bool answer_is_missing = false;  ///< it would be the advice itself, not a check below it
  double sureness = 0;  ///< deviations by which the fit says that a check is needless
};

// Walks down the grid to the lowest limit that, by the fit, still keeps the share. It must be
// measured, and the next lower one must be known or surely miss it.
std::optional<Question> open_question(const Knowledge& known,
                                      const Shares& shares,
                                      double percent) {
  const double target = std::log(percent / 100);
  const std::vector<double> grid = known.space().values();
  std::size_t lowest = 0;
  while (lowest + 1 < grid.size() && shares.log_share_at(grid[lowest + 1]).mean >= target) {
    ++lowest;
  }
  if (!known.was_tried(grid[lowest])) {
    return Question{grid[lowest], shares.log_share_at(grid[lowest]).deviation, true, 0};
  }
  if (lowest + 1 < grid.size() && !known.was_tried(grid[lowest + 1])) {
    const Estimate below = shares.log_share_at(grid[lowest + 1]);
    if (target - below.mean < kSure * below.deviation) {
      return Question{grid[lowest + 1], below.deviation, false,
                      (target - below.mean) / below.deviation};
    }
  }
  return std::nullopt;
}

/// The open questions about all shares, the most uncertain first.
std::vector<Question> open_questions(const Knowledge& known,
                                     const Shares& shares,
                                     std::span<const double> keep_percent) {
  std::vector<Question> questions;
  for (const double percent : keep_percent) {
    if (const auto question = open_question(known, shares, percent)) {
      questions.push_back(*question);
    }
  }
  std::stable_sort(questions.begin(), questions.end(),
                   [](const auto& a, const auto& b) { return a.uncertainty > b.uncertainty; });
  return questions;
}

// The limit near the widest unresolved crossing that was looked at least: a new one where the
// budget has room, else a repeat.
std::optional<double> worth_another_look(const Knowledge& known,
                                         const Shares& shares,
                                         std::span<const double> keep_percent,
                                         bool room_for_new) {
  const double step = known.space().step;
  std::optional<double> choice;
  double widest = 0;
  for (const double percent : keep_percent) {
    const KeepVerdict verdict = shares.keep(percent, step);
    if (!verdict.interpolated || verdict.resolvable) {
      continue;
    }
    const auto [low, high] = *verdict.interval;
    if (high - low <= widest) {
      continue;
    }
    widest = high - low;
    double best = 0;
    for (const double x : known.space().values()) {
      const CurvePoint* point = known.point(x);
      const bool allowed = point != nullptr ? !known.curve.repeats_exactly()
                                            : room_for_new && !known.was_tried(x);
      if (!allowed || x == known.reference() || x < low - step || x > high + step) {
        continue;
      }
      const double distance = std::abs(x - *verdict.interpolated) / step;
      const double value = 1 / ((1 + distance) * (1 + (point != nullptr ? point->windows : 0)));
      if (value > best) {
        best = value;
        choice = x;
      }
    }
  }
  return choice;
}

double spread(std::span<const Measurement> measured, const Knob& knob, double x) {
  std::vector<double> values;
  for (const Measurement& each : measured) {
    if (each.setting.number(knob.name) == x && each.counts()) {
      values.push_back(std::log(each.work.step_time.value()));
    }
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return values.empty() ? 0 : *high - *low;
}

// A limit whose windows contradict each other or the rest of the curve.
std::optional<double> contradiction(const Knowledge& known,
                                    std::span<const Measurement> measured) {
  const Curve& curve = known.curve;
  if (curve.repeats_exactly()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const CurvePoint& point = curve.points[i];
    if (point.windows == 2 && i != curve.reference &&
        spread(measured, known.space().knob, point.x) > kDisagreement) {
      return point.x;
    }
    if (point.windows > 1 || curve.points.size() < 5 || i == 0) {
      continue;
    }
    std::vector<FitPoint> others = step_time_points(curve);
    const FitPoint left_out = others[i];
    others.erase(others.begin() + static_cast<long>(i));
    const Estimate expected = Fit(others).at(curve.effective(point.x));
    const double deviation = std::hypot(expected.deviation, *curve.noise);
    const double off = std::abs(left_out.log_y - expected.mean);
    if (off > kSuspect * deviation && off > kDisagreement) {
      return point.x;
    }
  }
  return std::nullopt;
}

// The new limit that helps most, with `room` for so many.
std::optional<double> new_limit(const Knowledge& known,
                                const Shares& shares,
                                std::span<const double> keep_percent,
                                long room) {
  const std::vector<Question> questions = open_questions(known, shares, keep_percent);
  const auto missing = std::count_if(questions.begin(), questions.end(),
                                     [](const auto& each) { return each.answer_is_missing; });
  // The last limits are kept for the advice itself.
  const bool spare = room > missing;
  const auto cheaper = [&](Thrift thrift) {
    return cheaper_limit(known.curve, known.space(), known.tried, thrift);
  };
  if (spare && known.curve.points.size() >= kPointsBeforeEnergy) {
    if (const auto x = cheaper(Thrift::large)) {
      return x;
    }
  }
  for (const Question& question : questions) {
    if (question.answer_is_missing || (spare && question.sureness < kQuiteSure)) {
      return question.x;
    }
  }
  if (const auto x = cheaper(Thrift::small)) {
    return x;
  }
  return questions.empty() ? std::nullopt : std::optional(questions.front().x);
}

}  // namespace

LimitSearch::LimitSearch(LimitSpace space,
                         double reference,
                         std::vector<double> keep_percent,
                         SearchBudget budget)
    : space_(std::move(space)),
      reference_(reference),
      keep_percent_(std::move(keep_percent)),
      budget_(budget) {}

// On a short grid a search must stay cheaper than walking it.
std::size_t LimitSearch::most_windows() const {
  const auto of_grid =
      static_cast<int>(kMostOfGrid * static_cast<double>(space_.values().size()));
  return static_cast<std::size_t>(std::min(budget_.windows, std::max(of_grid, kFewestWindows)));
}

std::optional<Setting> LimitSearch::next(std::span<const Measurement> measured) const {
  const auto settled = std::count_if(measured.begin(), measured.end(),
                                     [](const Measurement& each) { return each.settled(); });
  if (static_cast<std::size_t>(settled) >= most_windows()) {
    return std::nullopt;
  }
  const Knowledge known(space_, reference_, measured);
  const auto go_to = [this](std::optional<double> x) {
    return x ? std::optional(space_.setting(*x)) : std::nullopt;
  };
  for (const double x : {reference_, space_.max}) {
    if (!known.was_tried(x)) {
      return go_to(x);
    }
  }
  if (known.point(reference_) == nullptr) {
    return std::nullopt;  // without its 100 % there is nothing to find
  }
  if (const auto x = opening(known)) {
    return go_to(x);
  }
  const Shares shares(known.curve);
  if (const auto x = contradiction(known, measured)) {
    return go_to(x);
  }
  const long room = budget_.limits - static_cast<long>(known.tried.size());
  if (room > 0) {
    if (const auto x = new_limit(known, shares, keep_percent_, room)) {
      return go_to(x);
    }
  }
  return go_to(worth_another_look(known, shares, keep_percent_, room > 0));
}

}  // namespace halfwatt
