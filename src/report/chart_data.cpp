#include "report/chart_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

bool finite(const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

/// Without what is absent, so that a page stays small.
Json json_of(const ChartPoint& point) {
  Json json = {{"x", point.x}, {"y", point.y}};
  if (point.low && std::isfinite(*point.low)) {
    json["low"] = *point.low;
  }
  if (point.high && std::isfinite(*point.high)) {
    json["high"] = *point.high;
  }
  if (point.marked) {
    json["marked"] = true;
  }
  if (!point.label.empty()) {
    json["label"] = point.label;
  }
  return json;
}

Json json_of(const ChartLine& line) {
  Json points = Json::array();
  for (const ChartPoint& point : line.points) {
    if (finite(point)) {
      points.push_back(json_of(point));
    }
  }
  return {{"name", line.name},
          {"emphasis", word(line.emphasis)},
          {"joined", line.joined},
          {"points", std::move(points)}};
}

Json json_of(const Axis& axis) {
  return {{"title", axis.title}, {"logarithmic", axis.logarithmic}};
}

Json json_of(const Chart& chart) {
  Json lines = Json::array();
  for (const ChartLine& line : chart.lines) {
    lines.push_back(json_of(line));
  }
  Json guides = Json::array();
  std::copy_if(chart.guides.begin(), chart.guides.end(), std::back_inserter(guides),
               [](double guide) { return std::isfinite(guide); });
  return {{"id", chart.id},
          {"x", json_of(chart.x)},
          {"y", json_of(chart.y)},
          {"guides", std::move(guides)},
          {"lines", std::move(lines)}};
}

std::string x_text(double value) { return fmt::format("{:.6g}", value); }

/// Five digits, the last ones of equally large values below each other.
std::string digits(double value) {
  constexpr int kDigits = 5;
  const double size = std::abs(value);
  if (!std::isfinite(value) || (size != 0 && (size < 1e-4 || size >= 1e9))) {
    return fmt::format("{:.{}g}", value, kDigits);
  }
  const int before_point = size >= 1 ? static_cast<int>(std::log10(size)) + 1 : 1;
  return fmt::format("{:.{}f}", value, std::max(0, kDigits - before_point));
}

std::string y_text(const ChartPoint& point) {
  if (!point.low && !point.high) {
    return digits(point.y);
  }
  return fmt::format("{} ({} to {})", digits(point.y), digits(point.low.value_or(point.y)),
                     digits(point.high.value_or(point.y)));
}

Cell y_cell(const ChartLine& line, const ChartPoint& point) {
  const Emphasis emphasis = line.emphasis == Emphasis::struck ? Emphasis::struck
                            : point.marked                    ? Emphasis::good
                                                              : Emphasis::plain;
  return {y_text(point), emphasis};
}

using Rows = std::map<double, std::vector<Cell>>;

/// One row for each x; empty where a line has an x twice or most cells would be empty.
Rows matrix(const Chart& chart) {
  Rows rows;
  std::size_t filled = 0;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    for (const ChartPoint& point : chart.lines[i].points) {
      if (!finite(point)) {
        continue;
      }
      auto& row = rows[point.x];
      row.resize(chart.lines.size());
      if (!row[i].text.empty()) {
        return {};
      }
      row[i] = y_cell(chart.lines[i], point);
      ++filled;
    }
  }
  const bool sparse = 2 * filled < rows.size() * chart.lines.size();
  return sparse ? Rows{} : rows;
}

}  // namespace

std::string_view word(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::plain:
      break;
    case Emphasis::good:
      return "good";
    case Emphasis::bad:
      return "bad";
    case Emphasis::faint:
      return "faint";
    case Emphasis::struck:
      return "struck";
  }
  return "plain";
}

bool has_points(const Chart& chart) {
  return std::any_of(chart.lines.begin(), chart.lines.end(), [](const ChartLine& line) {
    return std::any_of(line.points.begin(), line.points.end(), finite);
  });
}

std::string chart_json(const std::vector<const Chart*>& charts) {
  Json all = Json::array();
  for (const Chart* chart : charts) {
    all.push_back(json_of(*chart));
  }
  const std::string text = all.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string
      safe;  // a `<` in a label could end the script; in JSON it is only ever in strings
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

Table chart_table(const Chart& chart) {
  Table table;
  Rows rows = matrix(chart);
  if (rows.empty()) {
    table.columns = {{"", false}, {chart.x.title}, {chart.y.title}, {"", false}};
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) {
        if (finite(point)) {
          table.rows.push_back({{line.name, line.emphasis},
                                {x_text(point.x)},
                                y_cell(line, point),
                                {point.label}});
        }
      }
    }
    return table;
  }
  table.columns.push_back({chart.x.title});
  for (const ChartLine& line : chart.lines) {
    table.columns.push_back({line.name});
  }
  for (auto& [x, cells] : rows) {
    cells.insert(cells.begin(), Cell{x_text(x)});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace halfwatt
