#include "tune/series_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace halfwatt {
namespace {

std::string with_unit(double x, const Knob& knob) {
  return number_text(x) + (knob.unit.empty() ? "" : " " + knob.unit);
}

void note_state(SeriesVerdict& verdict) {
  if (verdict.power_only()) {
    verdict.notes.push_back(
        "no progress was looked for (--progress none): an item is a second of running, so its "
        "watts are known and nothing is advised");
  }
  if (verdict.state == NumericalState::dead || verdict.state == NumericalState::stalled) {
    verdict.notes.push_back(
        fmt::format("{}: its figures are not advised{}", text(verdict.state),
                    verdict.series.remark.empty() ? "" : "; " + verdict.series.remark));
  } else if (!verdict.series.remark.empty()) {
    verdict.notes.push_back(verdict.series.remark);
  }
}

void note_windows(SeriesVerdict& verdict) {
  std::map<WindowNote, int> counts;
  for (const Measurement& measured : verdict.series.measurements) {
    for (const WindowNote note : measured.notes) {
      ++counts[note];
    }
  }
  for (const auto& [note, count] : counts) {
    if (note != WindowNote::cap_not_binding) {
      verdict.notes.push_back(
          fmt::format("{} window{}: {}", count, count == 1 ? "" : "s", sentence(note)));
    }
  }
  if (verdict.curve.empty()) {
    verdict.notes.push_back("no window counts");
  } else if (verdict.curve.points.size() == 1) {
    verdict.notes.push_back("one point only: nothing to compare it with");
  }
}

void note_drift(SeriesVerdict& verdict) {
  constexpr double kWorthSaying = 0.005;
  if (std::abs(verdict.curve.drift) > kWorthSaying) {
    verdict.notes.push_back(fmt::format(
        "steps got {:.1f} % {} at the reference from its first window to its last; "
        "every window is corrected for it",
        100 * std::abs(verdict.curve.drift), verdict.curve.drift > 0 ? "slower" : "faster"));
  }
}

void note_shape(SeriesVerdict& verdict) {
  const Knob& knob = verdict.series.knob;
  const Curve& curve = verdict.curve;
  const std::vector<Descent> descents = find_descents(curve);
  if (!descents.empty()) {
    const Descent& worst = descents.front();
    verdict.notes.push_back(fmt::format(
        "not monotone: {} is {:.2g} % slower than {}{}", with_unit(worst.to, knob),
        worst.percent, with_unit(worst.from, knob),
        descents.size() > 1 ? fmt::format("; {} such pairs in all", descents.size()) : ""));
  }
  for (const Outlier& outlier : find_outliers(curve)) {
    verdict.notes.push_back(fmt::format("outlier: {} takes {:+.2g} % against its neighbours",
                                        with_unit(outlier.x, knob), outlier.percent));
  }
  if (verdict.plateau) {
    const std::string from = with_unit(verdict.plateau->from, knob);
    verdict.notes.push_back(
        verdict.plateau->seen_in_draw
            ? fmt::format("the cap does not bind above {}: the card draws less", from)
            : fmt::format("plateau: above {} the speed stays the same within 0.5 %", from));
  } else if (verdict.peak != curve.reference) {
    const double gain = curve.share(verdict.peak) - 1;
    constexpr double kWorthSaying = 0.001;
    if (gain > kWorthSaying) {
      verdict.notes.push_back(
          fmt::format("the reference is not the fastest: {} is {:.2g} % faster",
                      with_unit(curve.points[verdict.peak].x, knob), 100 * gain));
    }
  }
}

void note_shares(SeriesVerdict& verdict) {
  if (verdict.curve.points.size() == 1) {
    return;  // which is said already
  }
  const Knob& knob = verdict.series.knob;
  for (const KeepVerdict& keep : verdict.keep) {
    if (!keep.limit) {
      verdict.notes.push_back(
          fmt::format("{:g} %: no measured limit and all above it keep it", keep.percent));
    } else if (keep.lower_limit) {
      verdict.notes.push_back(fmt::format(
          "{:g} %: {} reaches it too, but not all between it and {}: not resolvable",
          keep.percent, with_unit(*keep.lower_limit, knob), with_unit(*keep.limit, knob)));
    } else if (keep.at_floor) {
      verdict.notes.push_back(fmt::format("{:g} %: even the lowest measured, {}, keeps it{}",
                                          keep.percent, with_unit(*keep.limit, knob),
                                          keep.resolvable ? "" : "; not resolvable"));
    } else if (!keep.resolvable) {
      verdict.notes.push_back(fmt::format("{:g} %: not resolvable, between {} and {}",
                                          keep.percent, number_text(keep.interval->first),
                                          with_unit(keep.interval->second, knob)));
    }
  }
}

void note_energy(SeriesVerdict& verdict) {
  if (!verdict.least) {
    return;
  }
  const auto& measurements = verdict.series.measurements;
  const bool is_summed =
      std::any_of(measurements.begin(), measurements.end(), [](const Measurement& measured) {
        return measured.counts() && measured.energy.method == EnergyMethod::power_integral;
      });
  // Of what others recorded, the import says how their joules were made.
  if (is_summed && verdict.series.provenance == Provenance::measured) {
    verdict.notes.push_back(
        "this card has no energy counter that agrees with its power: joules are sampled "
        "power, summed up");
  }
  const auto& points = verdict.curve.points;
  if (points.size() > 1 && verdict.least->limit == points.front().x) {
    verdict.notes.push_back(
        "least energy is at the lowest measured limit: lower may be better");
  }
  if (points.front().joules_per_item && verdict.series.knob.unit == "W") {
    int over = 0;
    for (const CurvePoint& point : points) {
      over += verdict.curve.drawn_share(point).value_or(0) > 1.02 ? 1 : 0;
    }
    if (over > 0) {
      verdict.notes.push_back(
          fmt::format("the card drew over 2 % more than its limit at {} of {} limits", over,
                      points.size()));
    }
  }
}

}  // namespace

void add_notes(SeriesVerdict& verdict, const AnalysisOptions& options) {
  note_state(verdict);
  note_windows(verdict);
  if (verdict.curve.empty()) {
    return;
  }
  if (options.reference == Reference::preset &&
      (!verdict.series.limits || !verdict.series.limits->preset)) {
    verdict.notes.push_back("the preset limit is unknown: the highest measured one is 100 %");
  }
  note_drift(verdict);
  note_shape(verdict);
  note_shares(verdict);
  note_energy(verdict);
}

}  // namespace halfwatt
