#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tune/verdict.h"

namespace halfwatt {
namespace {

/// Speed and energy at one limit.
struct Rates {
  double items_per_second = 0;
  double joules_per_item = 0;
};

// Between measured limits that are further apart nothing is said without a fit.
constexpr double kWidestGap = 50;  // W, or the knob's unit
// What a fit must know speed and energy to, for a percent to mean something.
constexpr double kGoodFit = 0.01;

Rates rates_of(const SeriesVerdict& verdict, std::size_t i) {
  return {verdict.curve.points[i].items_per_second,
          joules_per_item(verdict.curve, i, verdict.least->basis)};
}

// Where repeats tell the noise, so that there is a fit, and it is sure enough.
std::optional<Rates> rates_by_fit(const SeriesVerdict& verdict, double x) {
  const Curve& curve = verdict.curve;
  if (!curve.noise || verdict.least->basis != EnergyBasis::measured) {
    return std::nullopt;
  }
  const Estimate step_time = Fit(step_time_points(curve)).at(x);
  const Estimate energy = EnergyFit(curve).at(x);
  if (step_time.deviation > kGoodFit || energy.deviation > kGoodFit) {
    return std::nullopt;
  }
  return Rates{verdict.items_per_step() / std::exp(step_time.mean), std::exp(energy.mean)};
}

// At a measured limit, by a fit, or between two near limits on a straight line.
std::optional<Rates> rates_at(const SeriesVerdict& verdict, double x) {
  const auto& points = verdict.curve.points;
  if (!verdict.least || points.empty() || x < points.front().x || x > points.back().x) {
    return std::nullopt;
  }
  std::size_t above = 0;
  while (points[above].x < x) {
    ++above;
  }
  const Rates high = rates_of(verdict, above);
  if (points[above].x == x) {
    return high;
  }
  if (const auto fitted = rates_by_fit(verdict, x)) {
    return fitted;
  }
  const double gap = points[above].x - points[above - 1].x;
  if (gap > kWidestGap) {
    return std::nullopt;
  }
  const Rates low = rates_of(verdict, above - 1);
  const double share = (x - points[above - 1].x) / gap;
  return Rates{low.items_per_second + share * (high.items_per_second - low.items_per_second),
               low.joules_per_item + share * (high.joules_per_item - low.joules_per_item)};
}

/// What one limit costs and saves against another.
struct Trade {
  double slower = 0;        // percent
  double fewer_joules = 0;  // percent
};

std::optional<Trade> trade(const SeriesVerdict& verdict, double from, double to) {
  const std::optional<Rates> before = rates_at(verdict, from);
  const std::optional<Rates> after = rates_at(verdict, to);
  if (!before || !after) {
    return std::nullopt;
  }
  return Trade{100 * (1 - after->items_per_second / before->items_per_second),
               100 * (1 - after->joules_per_item / before->joules_per_item)};
}

// The limit people run now: the vendor's where the figures reach it, else the reference.
double today(const SeriesVerdict& verdict) {
  if (verdict.series.limits && verdict.series.limits->preset) {
    const double preset = verdict.series.limits->preset->value();
    if (rates_at(verdict, preset)) {
      return preset;
    }
  }
  return verdict.curve.points[verdict.curve.reference].x;
}

std::string range(double low, double high) {
  const auto whole = [](double x) { return static_cast<int>(std::lround(x)); };
  return whole(low) == whole(high) ? fmt::format("{}", whole(low))
                                   : fmt::format("{} to {}", whole(low), whole(high));
}

std::string speed_words(const std::vector<Trade>& trades) {
  const auto [low, high] =
      std::minmax_element(trades.begin(), trades.end(),
                          [](const Trade& a, const Trade& b) { return a.slower < b.slower; });
  if (std::lround(high->slower) <= 0) {
    return "no slower";
  }
  return fmt::format("{} % slower", range(std::max(low->slower, 0.0), high->slower));
}

std::string energy_words(const std::vector<Trade>& trades, bool measured) {
  const auto [low, high] = std::minmax_element(
      trades.begin(), trades.end(),
      [](const Trade& a, const Trade& b) { return a.fewer_joules < b.fewer_joules; });
  std::string amount =
      fmt::format("{} % fewer joules", range(low->fewer_joules, high->fewer_joules));
  if (std::lround(high->fewer_joules) <= 0 && std::lround(low->fewer_joules) < 0) {
    amount = fmt::format("{} % more joules", range(-high->fewer_joules, -low->fewer_joules));
  } else if (std::lround(low->fewer_joules) <= 0) {
    amount = std::lround(high->fewer_joules) <= 0
                 ? "as many joules"
                 : fmt::format("up to {} % fewer joules", std::lround(high->fewer_joules));
  }
  return amount + (measured ? "" : " (limit x time, an estimate)");
}

std::string sentence_for(
    double from, double to, const Knob& knob, const std::vector<Trade>& trades, bool measured) {
  return fmt::format("{} {} instead of {} {}: {}, {}.", number_text(to), knob.unit,
                     number_text(from), knob.unit, speed_words(trades),
                     energy_words(trades, measured));
}

// Where nothing can be compared, what was measured is the answer.
std::string headline_of_point(const SeriesVerdict& verdict) {
  const CurvePoint& point = verdict.curve.points.front();
  const std::string unit = verdict.unit();
  return fmt::format(
      "{} {}s a second{} at {}{}{}.", number_text(point.items_per_second), unit,
      point.joules_per_item
          ? fmt::format(" and {:.4g} J a{} {}", *point.joules_per_item,
                        std::string_view("aeiou").find(unit.front()) != std::string_view::npos
                            ? "n"
                            : "",
                        unit)
          : "",
      number_text(point.x), verdict.series.knob.unit.empty() ? "" : " ",
      verdict.series.knob.unit);
}

// The highest share whose limit is below what people run now.
std::string headline_of_one(const SeriesVerdict& verdict) {
  if (verdict.curve.points.size() == 1) {
    return headline_of_point(verdict);
  }
  const double from = today(verdict);
  std::vector<KeepVerdict> keep = verdict.keep;
  std::stable_sort(keep.begin(), keep.end(),
                   [](const auto& a, const auto& b) { return a.percent > b.percent; });
  for (const KeepVerdict& each : keep) {
    if (!each.limit || *each.limit >= from || !each.resolvable) {
      continue;
    }
    const auto found = trade(verdict, from, *each.limit);
    // A limit that costs both speed and energy is no advice.
    if (found && (found->fewer_joules > 0 || found->slower <= 0)) {
      return sentence_for(from, *each.limit, verdict.series.knob, {*found},
                          verdict.least->basis == EnergyBasis::measured);
    }
  }
  return fmt::format(
      "No resolvable limit below {} {} keeps a share that was asked for and saves energy.",
      number_text(from), verdict.series.knob.unit);
}

std::string headline_of_card(const Verdict& verdict) {
  std::vector<const SeriesVerdict*> on_card;
  for (const SeriesVerdict& each : verdict.series) {
    if (each.advisable() && each.series.knob.unit == "W") {
      on_card.push_back(&each);
    }
  }
  const double from = today(*on_card.front());
  const bool measured = std::all_of(on_card.begin(), on_card.end(), [](const auto* each) {
    return each->least && each->least->basis == EnergyBasis::measured;
  });
  for (auto card = verdict.card.rbegin(); card != verdict.card.rend(); ++card) {
    if (!card->limit || *card->limit >= from || !card->resolvable) {
      continue;
    }
    std::vector<Trade> trades;
    for (const SeriesVerdict* each : on_card) {
      if (const auto found = trade(*each, from, *card->limit)) {
        trades.push_back(*found);
      }
    }
    if (trades.size() == on_card.size()) {
      std::string sentence =
          sentence_for(from, *card->limit, on_card.front()->series.knob, trades, measured);
      sentence.pop_back();
      return fmt::format("{}, over {} workloads.", sentence, trades.size());
    }
  }
  return fmt::format("No one limit below {} W suits all {} workloads.", number_text(from),
                     on_card.size());
}

}  // namespace

std::string headline(const Verdict& verdict) {
  const SeriesVerdict* only = nullptr;
  std::size_t advisable = 0;
  for (const SeriesVerdict& each : verdict.series) {
    if (each.advisable()) {
      only = &each;
      ++advisable;
    }
  }
  const bool watts_alone =
      std::any_of(verdict.series.begin(), verdict.series.end(),
                  [](const SeriesVerdict& each) { return each.power_only(); });
  if (advisable == 0 && watts_alone) {
    return "Nothing can be advised: watts alone were measured, since no progress is known.";
  }
  if (advisable == 0) {
    return "Nothing can be advised: no series has a window that counts and a network that "
           "lives.";
  }
  if (advisable == 1) {
    return headline_of_one(*only);
  }
  const bool one_card =
      !verdict.card.empty() &&
      std::all_of(verdict.card.begin(), verdict.card.end(), [&](const CardVerdict& card) {
        return card.device == verdict.card.front().device;
      });
  if (one_card) {
    return headline_of_card(verdict);
  }
  return fmt::format("{} series: one answer each, below.", advisable);
}

}  // namespace halfwatt
