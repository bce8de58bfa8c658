#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tune/pareto.h"
#include "tune/verdict_document.h"

namespace halfwatt {
namespace {

// More lines than this are a carpet; the tables have them all.
constexpr std::size_t kMostLines = 12;
constexpr std::size_t kMostFronts = 4;

/// The series that share a set of charts: those along one knob.
struct Shown {
  const Verdict& verdict;
  std::vector<std::size_t> series;
  std::string suffix;  ///< of the charts' ids: empty for the first set

  const SeriesVerdict& at(std::size_t i) const { return verdict.series[i]; }
};

using Value = std::function<std::optional<double>(const Curve&, std::size_t)>;

std::vector<Shown> sets_of(const Verdict& verdict) {
  std::vector<Shown> sets;
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    const Knob& knob = verdict.series[i].series.knob;
    auto set = std::find_if(sets.begin(), sets.end(), [&](const Shown& shown) {
      const Knob& other = shown.at(shown.series.front()).series.knob;
      return other.name == knob.name && other.unit == knob.unit;
    });
    if (set == sets.end()) {
      sets.push_back({verdict, {}, sets.empty() ? "" : fmt::format("-{}", sets.size() + 1)});
      set = sets.end() - 1;
    }
    if (set->series.size() < kMostLines) {
      set->series.push_back(i);
    }
  }
  return sets;
}

Emphasis emphasis(const SeriesVerdict& verdict) {
  return verdict.advisable() ? Emphasis::plain : Emphasis::struck;
}

Axis x_axis(const Shown& shown) {
  const Knob& knob = shown.at(shown.series.front()).series.knob;
  std::string name = knob.name;
  std::replace(name.begin(), name.end(), '_', ' ');
  return {knob.unit.empty() ? name : fmt::format("{} ({})", name, knob.unit)};
}

bool recommended(const SeriesVerdict& verdict, double x) {
  return verdict.advisable() &&
         std::any_of(verdict.keep.begin(), verdict.keep.end(),
                     [x](const KeepVerdict& keep) { return keep.limit == x; });
}

// A line of `value` over the knob; `per_rate` scales the error bars of the speed to it.
ChartLine line_of(const Shown& shown, std::size_t i, const Value& value, double per_rate) {
  const SeriesVerdict& each = shown.at(i);
  ChartLine line;
  line.name = shown.verdict.names[i];
  line.emphasis = emphasis(each);
  for (std::size_t k = 0; k < each.curve.points.size(); ++k) {
    const CurvePoint& point = each.curve.points[k];
    const std::optional<double> y = value(each.curve, k);
    if (!y) {
      continue;
    }
    ChartPoint drawn;
    drawn.x = point.x;
    drawn.y = *y;
    if (per_rate > 0 && point.low && point.high) {
      drawn.low = *point.low * per_rate;
      drawn.high = *point.high * per_rate;
    }
    drawn.marked = recommended(each, point.x);
    line.points.push_back(drawn);
  }
  return line;
}

Chart time_chart(const Shown& shown) {
  Chart chart{
      "time" + shown.suffix, "Time of a step", x_axis(shown), {"time (ms)", true}, {}, {}};
  for (const std::size_t i : shown.series) {
    ChartLine line = line_of(
        shown, i,
        [](const Curve& curve, std::size_t k) {
          return curve.points[k].step_time.value() * 1000;
        },
        0);
    const double items = shown.at(i).items_per_step();
    for (std::size_t k = 0; k < line.points.size(); ++k) {
      const CurvePoint& point = shown.at(i).curve.points[k];
      if (point.low && point.high) {
        line.points[k].low = 1000 * items / *point.high;
        line.points[k].high = 1000 * items / *point.low;
      }
    }
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

// Speed as a share of `hundred_percent`.
ChartLine share_line(const Shown& shown, std::size_t i, double hundred_percent) {
  return line_of(
      shown, i,
      [hundred_percent](const Curve& curve, std::size_t k) {
        return 100 * curve.points[k].items_per_second / hundred_percent;
      },
      100 / hundred_percent);
}

Chart share_chart(const Shown& shown) {
  const bool preset = shown.verdict.options.reference == Reference::preset;
  Chart chart{"share" + shown.suffix,
              preset ? "Share of the own speed at the default limit" : "Share of the own peak",
              x_axis(shown),
              {preset ? "speed (% of default)" : "speed (% of peak)"},
              {},
              shown.verdict.options.keep_percent};
  for (const std::size_t i : shown.series) {
    const Curve& curve = shown.at(i).curve;
    if (!curve.empty()) {
      chart.lines.push_back(
          share_line(shown, i, curve.points[curve.reference].items_per_second));
    }
  }
  return chart;
}

// The fastest speed among the series that are comparable with the i-th.
double fastest_rival(const Verdict& verdict, std::size_t i) {
  double fastest = 0;
  for (const SeriesVerdict& each : verdict.series) {
    if (each.advisable() && comparable(each, verdict.series[i])) {
      fastest = std::max(fastest, each.curve.points[each.peak].items_per_second);
    }
  }
  return fastest;
}

std::optional<Chart> fastest_chart(const Shown& shown) {
  Chart chart{"fastest" + shown.suffix,
              "Share of the fastest comparable series",
              x_axis(shown),
              {"speed (% of the fastest)"},
              {},
              {}};
  bool any_rivals = false;
  for (const std::size_t i : shown.series) {
    const double fastest = fastest_rival(shown.verdict, i);
    if (fastest <= 0) {
      continue;
    }
    for (const std::size_t other : shown.series) {
      any_rivals = any_rivals || (other < i && comparable(shown.at(other), shown.at(i)));
    }
    chart.lines.push_back(share_line(shown, i, fastest));
  }
  return any_rivals ? std::optional(std::move(chart)) : std::nullopt;
}

std::optional<Chart> energy_chart(const Shown& shown) {
  Chart chart{"energy" + shown.suffix,
              "Energy per item",
              x_axis(shown),
              {"joules per item", true},
              {},
              {}};
  bool estimate = false;
  for (const std::size_t i : shown.series) {
    const SeriesVerdict& each = shown.at(i);
    if (!each.least) {
      continue;
    }
    const EnergyBasis basis = each.least->basis;
    estimate = estimate || basis == EnergyBasis::limit_times_time;
    ChartLine line = line_of(
        shown, i,
        [basis](const Curve& curve, std::size_t k) { return joules_per_item(curve, k, basis); },
        0);
    for (ChartPoint& point : line.points) {
      point.marked = each.advisable() && point.x == each.least->limit;
    }
    chart.lines.push_back(std::move(line));
  }
  if (chart.lines.empty()) {
    return std::nullopt;
  }
  if (estimate) {
    chart.title += " (limit x time: an estimate)";
  }
  return chart;
}

Chart pareto_chart(const Verdict& verdict, const ParetoGroup& group, std::size_t number) {
  const std::string unit = verdict.series[group.series.front()].unit();
  Chart chart{fmt::format("pareto-{}", number),
              "Speed against energy",
              {fmt::format("{}s per second", unit), true},
              {"joules per item", true},
              {},
              {}};
  if (verdict.pareto.size() > 1) {
    chart.title += fmt::format(": {} and comparable", verdict.names[group.series.front()]);
  }
  const auto point_of = [&](std::size_t i, std::size_t k, bool marked,
                            const std::string& name) {
    const SeriesVerdict& each = verdict.series[i];
    return ChartPoint{each.curve.points[k].items_per_second,
                      joules_per_item(each.curve, k, group.basis),
                      std::nullopt,
                      std::nullopt,
                      marked,
                      name + number_text(each.curve.points[k].x) + " " + each.series.knob.unit};
  };
  for (const std::size_t i : group.series) {
    ChartLine line{verdict.names[i], {}, emphasis(verdict.series[i]), false};
    for (std::size_t k = 0; k < verdict.series[i].curve.points.size(); ++k) {
      line.points.push_back(point_of(i, k, false, ""));
    }
    chart.lines.push_back(std::move(line));
  }
  ChartLine front{"Pareto front", {}, Emphasis::good, true};
  for (const ParetoPoint& point : group.front) {
    front.points.push_back(
        point_of(point.series, point.point, true, verdict.names[point.series] + ", "));
  }
  chart.lines.push_back(std::move(front));
  return chart;
}

// A condition of the windows, over the knob; nullopt where none tells it.
std::optional<Chart> condition_chart(
    const Shown& shown,
    const std::string& id,
    const std::string& title,
    const std::string& unit,
    const std::function<std::optional<double>(const Measurement&)>& value) {
  Chart chart{id + shown.suffix, title, x_axis(shown), {unit}, {}, {}};
  for (const std::size_t i : shown.series) {
    const SeriesVerdict& each = shown.at(i);
    ChartLine line{shown.verdict.names[i], {}, emphasis(each), false};
    for (const Measurement& measured : each.series.measurements) {
      const auto x = measured.setting.number(each.series.knob.name);
      const auto y = value(measured);
      if (x && y) {
        line.points.push_back({*x, *y});
      }
    }
    if (!line.points.empty()) {
      chart.lines.push_back(std::move(line));
    }
  }
  return chart.lines.empty() ? std::nullopt : std::optional(chart);
}

std::optional<double> value_of(const auto& quantity) {
  return quantity ? std::optional(quantity->value()) : std::nullopt;
}

}  // namespace

std::vector<Chart> verdict_charts(const Verdict& verdict) {
  std::vector<Chart> charts;
  const auto add = [&charts](std::optional<Chart> chart) {
    if (chart) {
      charts.push_back(std::move(*chart));
    }
  };
  const std::vector<Shown> sets = sets_of(verdict);
  for (const Shown& shown : sets) {
    add(time_chart(shown));
    add(share_chart(shown));
    add(fastest_chart(shown));
    add(energy_chart(shown));
  }
  for (std::size_t i = 0; i < std::min(verdict.pareto.size(), kMostFronts); ++i) {
    add(pareto_chart(verdict, verdict.pareto[i], i + 1));
  }
  for (const Shown& shown : sets) {
    add(condition_chart(shown, "temperature", "Temperature at the end of each window", "C",
                        [](const Measurement& measured) {
                          return value_of(measured.conditions.temperature_end);
                        }));
    add(condition_chart(shown, "fan", "Fan", "%", [](const Measurement& measured) {
      return measured.conditions.fan_percent;
    }));
    add(condition_chart(shown, "clock", "SM clock", "MHz", [](const Measurement& measured) {
      return value_of(measured.conditions.sm_clock);
    }));
  }
  return charts;
}

}  // namespace halfwatt
