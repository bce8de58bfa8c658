#include "report/study_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halfwatt {
namespace {

constexpr std::string_view kStruck = "train fp16_half 160";

struct Row {
  double watts;
  double milliseconds;
};

struct StudySeries {
  std::string name;
  std::string mode;
  double batch;
  std::vector<Row> rows;

  Emphasis emphasis() const { return name == kStruck ? Emphasis::struck : Emphasis::plain; }
  double items_per_s(const Row& row) const { return batch / row.milliseconds * 1000; }
  double joules(const Row& row) const { return row.watts / items_per_s(row); }
  double fastest() const {
    double best = 0;
    for (const Row& row : rows) {
      best = std::max(best, items_per_s(row));
    }
    return best;
  }
  /// The lowest limit from which on every row reaches `percent` of the last one.
  double keeps(double percent) const {
    double limit = rows.back().watts;
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      if (items_per_s(*row) < percent / 100 * items_per_s(rows.back())) {
        break;
      }
      limit = row->watts;
    }
    return limit;
  }
  double thriftiest() const {
    return std::min_element(
               rows.begin(), rows.end(),
               [this](const Row& a, const Row& b) { return joules(a) < joules(b); })
        ->watts;
  }
};

std::vector<StudySeries> read_study(const std::filesystem::path& csv) {
  std::ifstream file(csv);
  std::vector<StudySeries> study;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    std::string workload, mode, precision;
    double batch = 0;
    Row row{};
    words >> workload >> mode >> precision >> batch >> row.watts >> row.milliseconds;
    const std::string name = fmt::format("{} {} {}", mode, precision, batch);
    if (study.empty() || study.back().name != name) {
      study.push_back({name, mode, batch, {}});
    }
    study.back().rows.push_back(row);
  }
  return study;
}

using Value = std::function<double(const StudySeries&, const Row&)>;

Chart chart(const std::vector<StudySeries>& study,
            std::string id,
            std::string title,
            std::string y_title,
            const Value& value,
            double relative_error) {
  Chart result{
      std::move(id), std::move(title), {"power limit (W)"}, {std::move(y_title)}, {}, {}};
  for (const StudySeries& series : study) {
    ChartLine line{series.name, {}, series.emphasis()};
    for (const Row& row : series.rows) {
      ChartPoint point{row.watts, value(series, row)};
      if (relative_error > 0) {
        point.low = point.y * (1 - relative_error);
        point.high = point.y * (1 + relative_error);
      }
      for (const double percent : {80.0, 90.0, 95.0}) {
        if (series.keeps(percent) == row.watts && line.emphasis != Emphasis::struck) {
          point.marked = true;
          point.label = fmt::format("lowest limit that keeps {} %", percent);
        }
      }
      line.points.push_back(point);
    }
    result.lines.push_back(std::move(line));
  }
  return result;
}

Chart pareto(const std::vector<StudySeries>& study, std::string_view mode) {
  Chart result{fmt::format("pareto-{}", mode),
               fmt::format("Speed against energy, {}", mode),
               {"images per second"},
               {"joules per image", true},
               {},
               {}};
  for (const StudySeries& series : study) {
    if (series.mode != mode) {
      continue;
    }
    ChartLine line{series.name, {}, series.emphasis(), false};
    for (const Row& row : series.rows) {
      ChartPoint point{series.items_per_s(row), series.joules(row)};
      point.marked = row.watts == series.thriftiest() && line.emphasis != Emphasis::struck;
      point.label = fmt::format("{} W", row.watts);
      line.points.push_back(point);
    }
    result.lines.push_back(std::move(line));
  }
  return result;
}

Table verdict(const std::vector<StudySeries>& study) {
  Table table{"Lowest power limits", {{"series", false}}, {}};
  for (const char* title : {"keeps 80 %", "keeps 90 %", "keeps 95 %", "least energy (W)",
                            "energy (J/image)", "peak (images/s)"}) {
    table.columns.push_back({title});
  }
  for (const StudySeries& series : study) {
    const Emphasis emphasis = series.emphasis();
    const bool struck = emphasis == Emphasis::struck;
    std::vector<Cell> row = {{series.name, emphasis}};
    for (const double percent : {80.0, 90.0, 95.0}) {
      const Emphasis chosen = percent == 95.0 && !struck ? Emphasis::good : emphasis;
      row.push_back({fmt::format("{}", series.keeps(percent)), chosen});
    }
    const auto best = std::min_element(
        series.rows.begin(), series.rows.end(),
        [&](const Row& a, const Row& b) { return series.joules(a) < series.joules(b); });
    row.push_back({fmt::format("{}", best->watts), emphasis});
    row.push_back({fmt::format("{:.3f}", series.joules(*best)), emphasis});
    row.push_back({fmt::format("{:.1f}", series.fastest()), emphasis});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table raw_rows(const std::vector<StudySeries>& study) {
  Table table{
      "Raw rows", {{"series", false}, {"limit (W)"}, {"time per batch (ms)"}}, {}, true};
  for (const StudySeries& series : study) {
    for (const Row& row : series.rows) {
      table.rows.push_back({{series.name, series.emphasis()},
                            {fmt::format("{}", row.watts)},
                            {fmt::format("{}", row.milliseconds)}});
    }
  }
  return table;
}

double fastest_of_mode(const std::vector<StudySeries>& study, std::string_view mode) {
  double best = 0;
  for (const StudySeries& series : study) {
    best = std::max(best, series.mode == mode ? series.fastest() : 0);
  }
  return best;
}

}  // namespace

Document study_document(const std::filesystem::path& csv) {
  const std::vector<StudySeries> study = read_study(csv);
  const auto time = [](const StudySeries&, const Row& row) { return row.milliseconds; };
  const auto own = [](const StudySeries& series, const Row& row) {
    return 100 * series.items_per_s(row) / series.fastest();
  };
  const auto of_fastest = [&](const StudySeries& series, const Row& row) {
    return 100 * series.items_per_s(row) / fastest_of_mode(study, series.mode);
  };
  const auto energy = [](const StudySeries& series, const Row& row) {
    return series.joules(row);
  };

  Chart times = chart(study, "time", "Time per batch", "time per batch (ms)", time, 0.03);
  times.y.logarithmic = true;
  Chart shares =
      chart(study, "own-peak", "Share of own peak", "share of own peak (%)", own, 0.015);
  shares.guides = {80, 90, 95};
  Chart joules =
      chart(study, "energy", "Energy per image", "limit x time (J/image)", energy, 0.02);
  joules.y.logarithmic = true;

  return {
      "ViT-B/16 on an RTX 3090",
      "recorded",
      {Paragraph{"300 W instead of 390 W: 5 % slower, 19 % fewer joules.", Emphasis::good},
       Paragraph{"Ten series of 34 power limits each, recorded by others on one card. No "
                 "power was recorded: joules are limit times time, an upper bound."},
       Heading{"Verdict"}, verdict(study),
       Note{"train fp16_half 160 was run with settings that killed the network when they were "
            "run again.",
            true},
       Note{"Intervals in this sample are made up."}, Heading{"Speed"}, std::move(times),
       std::move(shares),
       chart(study, "of-fastest", "Share of the fastest series of its mode",
             "share of the fastest (%)", of_fastest, 0),
       Heading{"Energy"}, std::move(joules), pareto(study, "train"), pareto(study, "inference"),
       Heading{"Rows"}, raw_rows(study)}};
}

}  // namespace halfwatt
