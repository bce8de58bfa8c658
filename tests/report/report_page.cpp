// report_page odd|STUDY.csv PAGE.html EXPECTED.json
//
// Writes a report, and beside it what its charts must show, for chromium_test.py: either like
// a real one, of the study, or one of odd input. The figures go from the document into the JSON
// without the renderer.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "report/chart_data.h"
#include "report/document.h"
#include "report/html.h"
#include "report/odd_document.h"
#include "report/study_document.h"
#include "report/terminal.h"

namespace {

using halfwatt::Chart;
using halfwatt::ChartLine;
using halfwatt::ChartPoint;
using nlohmann::json;

json expected(const ChartPoint& point) {
  const auto or_null = [](const auto& value) {
    return value && std::isfinite(*value) ? json(*value) : json();
  };
  return {point.x, point.y, or_null(point.low), or_null(point.high), point.marked};
}

json expected(const ChartLine& line) {
  json points = json::array();
  for (const ChartPoint& point : line.points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) {
      points.push_back(expected(point));
    }
  }
  const bool struck = line.emphasis == halfwatt::Emphasis::struck;
  return {{"name", line.name}, {"struck", struck}, {"points", std::move(points)}};
}

json expected(const Chart& chart) {
  json lines = json::array();
  for (const ChartLine& line : chart.lines) {
    lines.push_back(expected(line));
  }
  return {{"id", chart.id}, {"lines", std::move(lines)}};
}

int run(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: report_page odd|STUDY.csv PAGE.html EXPECTED.json\n");
    return 2;
  }
  const halfwatt::Document document = std::string_view(argv[1]) == "odd"
                                          ? halfwatt::odd_document()
                                          : halfwatt::study_document(argv[1]);
  json charts = json::array();
  for (const halfwatt::Block& block : document.blocks) {
    const auto* chart = std::get_if<Chart>(&block);
    if (chart != nullptr && halfwatt::has_points(*chart)) {
      charts.push_back(expected(*chart));
    }
  }
  std::ofstream(argv[3]) << json{{"charts", std::move(charts)}};
  const auto written = halfwatt::write_html(document, argv[2]);
  if (!written) {
    fmt::print(stderr, "report_page: {}\n", written.error().message);
    return 1;
  }
  fmt::print("{}", halfwatt::render_terminal(document, {}));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "report_page: %s\n", error.what());
    return 1;
  }
}
