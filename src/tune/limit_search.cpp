#include "tune/limit_search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tune/energy.h"
#include "tune/shares.h"

namespace halfwatt {
namespace {

// A limit that nobody measured is taken to miss a share without looking when the fit is this many
// deviations sure of it.
constexpr double kSure = 3;
// The first limits after the top, as shares of the range: enough to see the bend of the curve.
constexpr double kOpening[] = {0.5, 0.25};
// A limit is worth a window for its energy if it may save this much more; a large saving is
// looked for before the last doubts about shares are settled.
constexpr double kSmallSaving = 0.00025;
constexpr double kLargeSaving = 0.003;
constexpr std::size_t kPointsBeforeEnergy = 7;
// A neighbour of the cheapest limit is looked at if the parabola puts it at most this much higher.
constexpr double kRoughNeighbour = 0.008;
// How far below the lowest measured limit to look next while energy still falls.
constexpr double kStepDown = 0.12;
// Two windows of one limit this far apart need a third to say which is odd.
constexpr double kDisagreement = 0.01;
// A point is suspect if it lies this many deviations off the fit through all others.
constexpr double kSuspect = 4.0;

/// What is known so far, as the search needs it.
class Knowledge {
 public:
  Knowledge(const LimitSpace& space, std::span<const Measurement> measured) : space_(space) {
    Series series;
    series.knob = space.knob;
    series.measurements.assign(measured.begin(), measured.end());
    for (const Measurement& each : measured) {
      if (const auto x = each.setting.number(space.knob.name)) {
        tried.insert(*x);
      }
    }
    curve = build_curve(series, Reference::top);
    if (!curve.noise) {
      curve.noise = kAssumedNoise;
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
  for (const double share : kOpening) {
    const double x = on_grid(known.space(), share);
    if (!known.was_tried(x)) {
      return x;
    }
  }
  return std::nullopt;
}

/// A limit that would help to place a share, and how open the question is.
struct Question {
  double x = 0;
  double uncertainty = 0;
  bool answer_is_missing = false;  ///< it would be the advice itself, not a check below it
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
    return Question{grid[lowest], shares.log_share_at(grid[lowest]).deviation, true};
  }
  if (lowest + 1 < grid.size() && !known.was_tried(grid[lowest + 1])) {
    const Estimate below = shares.log_share_at(grid[lowest + 1]);
    if (target - below.mean < kSure * below.deviation) {
      return Question{grid[lowest + 1], below.deviation, false};
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
  std::stable_sort(questions.begin(), questions.end(), [](const auto& a, const auto& b) {
    return a.uncertainty > b.uncertainty;
  });
  return questions;
}

// Log of energy an item at the measured points, by the fit.
std::vector<double> energies(const Curve& curve) {
  const EnergyFit fit(curve);
  std::vector<double> values;
  for (const CurvePoint& point : curve.points) {
    values.push_back(fit.at(point.x).mean);
  }
  return values;
}

double round_to_grid(const LimitSpace& space, double x) {
  const double steps = std::round((space.max - x) / space.step);
  return std::clamp(space.max - steps * space.step, space.min, space.max);
}

// The next limit in a search for the least energy: further down while the lowest measured limit
// is the cheapest, then the lowest point of the parabola through the three cheapest neighbours,
// then the unmeasured neighbours themselves.
std::optional<double> cheaper_limit(const Knowledge& known, bool coarse) {
  const std::vector<CurvePoint>& points = known.curve.points;
  const LimitSpace& space = known.space();
  const std::vector<double> energy = energies(known.curve);
  const auto best = static_cast<std::size_t>(
      std::min_element(energy.begin(), energy.end()) - energy.begin());
  const double x = points[best].x;
  const auto open = [&](double candidate) {
    return candidate >= space.min && candidate <= space.max && !known.was_tried(candidate);
  };
  if (best == 0) {
    const double lower = round_to_grid(space, std::min(x * (1 - kStepDown), x - space.step));
    return open(lower) ? std::optional(lower) : std::nullopt;
  }
  if (best + 1 == points.size()) {
    return std::nullopt;
  }
  const double left = x - points[best - 1].x;
  const double right = points[best + 1].x - x;
  const double rise_left = (energy[best - 1] - energy[best]) / left;
  const double rise_right = (energy[best + 1] - energy[best]) / right;
  const double curvature = (rise_left + rise_right) / (left + right);
  const double offset =
      curvature > 0 ? (curvature * right - rise_right) / (2 * curvature) : 0;
  const double vertex = round_to_grid(space, x + offset);
  const double saving = curvature * offset * offset;
  if (open(vertex) && saving > (coarse ? kLargeSaving : kSmallSaving)) {
    return vertex;
  }
  if (coarse) {
    return std::nullopt;
  }
  // Curves are rough: a neighbour that the parabola puts a little higher may yet be cheaper.
  const double nearer = offset > 0 ? x + space.step : x - space.step;
  const double farther = offset > 0 ? x - space.step : x + space.step;
  for (const double neighbour : {nearer, farther}) {
    const double distance = neighbour - x;
    const double expected = curvature * distance * (distance - 2 * offset);
    if (open(neighbour) && expected < kRoughNeighbour) {
      return neighbour;
    }
  }
  return std::nullopt;
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
      const bool allowed = point != nullptr || (room_for_new && !known.was_tried(x));
      if (!allowed || x == known.space().max || x < low - step || x > high + step) {
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
  double low = 0;
  double high = 0;
  for (const Measurement& each : measured) {
    if (each.setting.number(knob.name) == x && each.counts()) {
      const double value = std::log(each.work.step_time.value());
      low = low == 0 ? value : std::min(low, value);
      high = high == 0 ? value : std::max(high, value);
    }
  }
  return high - low;
}

// A limit whose windows contradict each other or the rest of the curve.
std::optional<double> contradiction(const Knowledge& known,
                                    std::span<const Measurement> measured) {
  const Curve& curve = known.curve;
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
    const Estimate expected = Fit(others).at(point.x);
    const double deviation = std::hypot(expected.deviation, *curve.noise);
    const double off = std::abs(left_out.log_y - expected.mean);
    if (off > kSuspect * deviation && off > kDisagreement) {
      return point.x;
    }
  }
  return std::nullopt;
}

}  // namespace

LimitSearch::LimitSearch(LimitSpace space, std::vector<double> keep_percent, SearchBudget budget)
    : space_(std::move(space)), keep_percent_(std::move(keep_percent)), budget_(budget) {}

std::optional<Setting> LimitSearch::next(std::span<const Measurement> measured) const {
  if (static_cast<int>(measured.size()) >= budget_.windows) {
    return std::nullopt;
  }
  const Knowledge known(space_, measured);
  const auto go_to = [this](std::optional<double> x) {
    return x ? std::optional(space_.setting(*x)) : std::nullopt;
  };
  if (!known.was_tried(space_.max)) {
    return go_to(space_.max);
  }
  if (known.point(space_.max) == nullptr) {
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
  const bool room_for_new = room > 0;
  if (room_for_new) {
    const std::vector<Question> questions = open_questions(known, shares, keep_percent_);
    const auto missing = std::count_if(questions.begin(), questions.end(),
                                       [](const auto& each) { return each.answer_is_missing; });
    // The last limits are kept for the advice itself.
    const bool spare = room > missing;
    if (spare && known.curve.points.size() >= kPointsBeforeEnergy) {
      if (const auto x = cheaper_limit(known, true)) {
        return go_to(x);
      }
    }
    for (const Question& question : questions) {
      if (spare || question.answer_is_missing) {
        return go_to(question.x);
      }
    }
    if (const auto x = cheaper_limit(known, false)) {
      return go_to(x);
    }
  }
  return go_to(worth_another_look(known, shares, keep_percent_, room_for_new));
}

}  // namespace halfwatt
