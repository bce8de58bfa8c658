#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tune/pareto.h"
#include "tune/verdict_document.h"

namespace halfwatt {
namespace {

// More lines than this are a carpet; the table has them all.
constexpr std::size_t kMostLines = 12;

using Value = std::function<std::optional<double>(const CurvePoint&)>;

Emphasis emphasis(const SeriesVerdict& verdict) {
  return verdict.advisable() ? Emphasis::plain : Emphasis::struck;
}

std::size_t lines(const Verdict& verdict) {
  return std::min(verdict.series.size(), kMostLines);
}

Axis x_axis(const Verdict& verdict) {
  const Knob& knob = verdict.series.front().series.knob;
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
ChartLine line_of(const Verdict& verdict, std::size_t i, const Value& value, double per_rate) {
  const SeriesVerdict& each = verdict.series[i];
  ChartLine line;
  line.name = verdict.names[i];
  line.emphasis = emphasis(each);
  for (const CurvePoint& point : each.curve.points) {
    const std::optional<double> y = value(point);
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

Chart time_chart(const Verdict& verdict) {
  Chart chart{"time", "Time of a step", x_axis(verdict), {"time (ms)", true}, {}, {}};
  for (std::size_t i = 0; i < lines(verdict); ++i) {
    ChartLine line = line_of(
        verdict, i, [](const CurvePoint& point) { return point.step_time.value() * 1000; }, 0);
    const double items = verdict.series[i].items_per_step();
    for (std::size_t k = 0; k < line.points.size(); ++k) {
      const CurvePoint& point = verdict.series[i].curve.points[k];
      if (point.low && point.high) {
        line.points[k].low = 1000 * items / *point.high;
        line.points[k].high = 1000 * items / *point.low;
      }
    }
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

Chart share_chart(const Verdict& verdict) {
  Chart chart{"share", "Share of the own peak",     x_axis(verdict), {"speed (% of peak)"},
              {},      verdict.options.keep_percent};
  for (std::size_t i = 0; i < lines(verdict); ++i) {
    const SeriesVerdict& each = verdict.series[i];
    const double peak =
        each.curve.empty() ? 1 : each.curve.points[each.curve.reference].items_per_second;
    chart.lines.push_back(line_of(
        verdict, i,
        [peak](const CurvePoint& point) { return 100 * point.items_per_second / peak; },
        100 / peak));
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

std::optional<Chart> fastest_chart(const Verdict& verdict) {
  Chart chart{"fastest",
              "Share of the fastest comparable series",
              x_axis(verdict),
              {"speed (% of the fastest)"},
              {},
              {}};
  bool any_rivals = false;
  for (std::size_t i = 0; i < lines(verdict); ++i) {
    const double fastest = fastest_rival(verdict, i);
    if (fastest <= 0) {
      continue;
    }
    for (std::size_t k = 0; k < i; ++k) {
      any_rivals = any_rivals || comparable(verdict.series[k], verdict.series[i]);
    }
    chart.lines.push_back(line_of(
        verdict, i,
        [fastest](const CurvePoint& point) { return 100 * point.items_per_second / fastest; },
        100 / fastest));
  }
  return any_rivals ? std::optional(std::move(chart)) : std::nullopt;
}

std::optional<Chart> energy_chart(const Verdict& verdict) {
  Chart chart{"energy", "Energy per item", x_axis(verdict), {"joules per item", true}, {}, {}};
  bool estimate = false;
  for (std::size_t i = 0; i < lines(verdict); ++i) {
    const SeriesVerdict& each = verdict.series[i];
    if (!each.least) {
      continue;
    }
    const EnergyBasis basis = each.least->basis;
    estimate = estimate || basis == EnergyBasis::limit_times_time;
    ChartLine line = line_of(
        verdict, i, [basis](const CurvePoint& point) { return joules_per_item(point, basis); },
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

std::vector<Chart> pareto_charts(const Verdict& verdict) {
  std::vector<Chart> charts;
  for (const ParetoGroup& group : verdict.pareto) {
    const auto shown = [](std::size_t i) { return i < kMostLines; };
    if (std::none_of(group.series.begin(), group.series.end(), shown) ||
        charts.size() >= kMostLines / 3) {
      continue;
    }
    Chart chart{
        fmt::format("pareto-{}", charts.size() + 1),
        "Speed against energy",
        {fmt::format("{}s per second", verdict.series[group.series.front()].unit()), true},
        {"joules per item", true},
        {},
        {}};
    if (verdict.pareto.size() > 1) {
      chart.title += fmt::format(": {} and comparable", verdict.names[group.series.front()]);
    }
    for (const std::size_t i : group.series) {
      ChartLine line{verdict.names[i], {}, emphasis(verdict.series[i]), false};
      for (const CurvePoint& point : verdict.series[i].curve.points) {
        line.points.push_back(
            {point.items_per_second, joules_per_item(point, group.basis), std::nullopt,
             std::nullopt, false,
             number_text(point.x) + " " + verdict.series[i].series.knob.unit});
      }
      chart.lines.push_back(std::move(line));
    }
    ChartLine front{"Pareto front", {}, Emphasis::good, true};
    for (const ParetoPoint& point : group.front) {
      const SeriesVerdict& each = verdict.series[point.series];
      front.points.push_back(
          {point.items_per_second, point.joules_per_item, std::nullopt, std::nullopt, true,
           fmt::format("{}, {} {}", verdict.names[point.series],
                       number_text(each.curve.points[point.point].x), each.series.knob.unit)});
    }
    chart.lines.push_back(std::move(front));
    charts.push_back(std::move(chart));
  }
  return charts;
}

// A condition of the windows, over the knob; nullopt where none tells it.
std::optional<Chart> condition_chart(
    const Verdict& verdict,
    const std::string& id,
    const std::string& title,
    const std::string& unit,
    const std::function<std::optional<double>(const Measurement&)>& value) {
  Chart chart{id, title, x_axis(verdict), {unit}, {}, {}};
  for (std::size_t i = 0; i < lines(verdict); ++i) {
    const SeriesVerdict& each = verdict.series[i];
    ChartLine line{verdict.names[i], {}, emphasis(each), false};
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

}  // namespace

std::vector<Chart> verdict_charts(const Verdict& verdict) {
  std::vector<Chart> charts = {time_chart(verdict), share_chart(verdict)};
  const auto add = [&charts](std::optional<Chart> chart) {
    if (chart) {
      charts.push_back(std::move(*chart));
    }
  };
  add(fastest_chart(verdict));
  add(energy_chart(verdict));
  for (Chart& chart : pareto_charts(verdict)) {
    charts.push_back(std::move(chart));
  }
  add(condition_chart(verdict, "temperature", "Temperature at the end of each window", "C",
                      [](const Measurement& measured) -> std::optional<double> {
                        const auto& heat = measured.conditions.temperature_end;
                        return heat ? std::optional(heat->value()) : std::nullopt;
                      }));
  add(condition_chart(verdict, "fan", "Fan", "%", [](const Measurement& measured) {
    return measured.conditions.fan_percent;
  }));
  add(condition_chart(verdict, "clock", "SM clock", "MHz",
                      [](const Measurement& measured) -> std::optional<double> {
                        const auto& clock = measured.conditions.sm_clock;
                        return clock ? std::optional(clock->value()) : std::nullopt;
                      }));
  return charts;
}

}  // namespace halfwatt
