#include "report/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string_view>
#include <vector>

#include "report/ink.h"
#include "report/text_layout.h"

namespace halfwatt {
namespace {

constexpr std::size_t kLines = 4;  // more letters than this hide each other
constexpr int kRows = 12;
constexpr int kWidest = 76;
constexpr int kLabel = 9;  // columns for the numbers of the y axis
constexpr std::string_view kAxis = "\xE2\x94\x82";
constexpr std::string_view kTick = "\xE2\x94\xA4";
constexpr std::string_view kCorner = "\xE2\x94\x94";
constexpr std::string_view kFloor = "\xE2\x94\x80";

/// Values of one axis, to cells 0 .. cells-1.
class Scale {
 public:
  Scale(bool logarithmic, int cells) : logarithmic_(logarithmic), cells_(cells) {}

  void include(double value) {
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  bool holds(double value) const {
    return std::isfinite(value) && (!logarithmic_ || value > 0);
  }
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }

  int cell(double value) const {
    const double span = position(high_) - position(low_);
    const double share = span > 0 ? (position(value) - position(low_)) / span : 0;
    return std::clamp(static_cast<int>(std::lround(share * (cells_ - 1))), 0, cells_ - 1);
  }

 private:
  double position(double value) const { return logarithmic_ ? std::log(value) : value; }

  bool logarithmic_;
  int cells_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

struct Canvas {
  Scale x;
  Scale y;
  std::vector<std::string> rows;  ///< ASCII, the top one first

  char& at(int column, int row) {
    auto& line = rows[rows.size() - 1 - static_cast<std::size_t>(row)];
    return line[static_cast<std::size_t>(column)];
  }
};

/// The points of `line` that the axes can show.
std::vector<ChartPoint> drawable(const ChartLine& line, const Canvas& canvas) {
  std::vector<ChartPoint> points;
  std::copy_if(line.points.begin(), line.points.end(), std::back_inserter(points),
               [&](const ChartPoint& p) { return canvas.x.holds(p.x) && canvas.y.holds(p.y); });
  return points;
}

void draw(const ChartLine& line, char letter, Canvas& canvas) {
  const std::vector<ChartPoint> points = drawable(line, canvas);
  const auto put = [&](int column, int row) {
    char& place = canvas.at(column, row);
    place = place == ' ' || place == '.' ? letter : place;
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const int column = canvas.x.cell(points[i].x);
    const int row = canvas.y.cell(points[i].y);
    put(column, row);
    if (!line.joined || i + 1 == points.size()) {
      continue;
    }
    const int steps = canvas.x.cell(points[i + 1].x) - column;
    const int rise = canvas.y.cell(points[i + 1].y) - row;
    for (int step = 1; step < steps; ++step) {
      put(column + step, row + static_cast<int>(std::lround(1.0 * rise * step / steps)));
    }
  }
}

void mark(const ChartLine& line, char capital, Canvas& canvas) {
  for (const ChartPoint& point : drawable(line, canvas)) {
    if (point.marked) {
      canvas.at(canvas.x.cell(point.x), canvas.y.cell(point.y)) = capital;
    }
  }
}

void draw_guides(const Chart& chart, Canvas& canvas) {
  for (const double guide : chart.guides) {
    if (canvas.y.holds(guide) && guide >= canvas.y.low() && guide <= canvas.y.high()) {
      std::string& row =
          canvas.rows[canvas.rows.size() - 1 - static_cast<std::size_t>(canvas.y.cell(guide))];
      for (std::size_t i = 0; i < row.size(); i += 2) {
        row[i] = '.';
      }
    }
  }
}

/// Four digits and all those before the point, or three and an exponent: at most kLabel.
std::string number(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e6)) {
    return fmt::format("{:.2e}", value);
  }
  const int before_point = size >= 1 ? static_cast<int>(std::log10(size)) + 1 : 0;
  return fmt::format("{:.{}g}", value, std::max(4, before_point));
}

/// The canvas between its axes.
std::string framed(const Canvas& canvas, const Chart& chart) {
  const int width = static_cast<int>(canvas.rows.front().size()) + kLabel + 2;
  std::string out = shortened(printable(chart.y.title), width) + "\n";
  for (std::size_t i = 0; i < canvas.rows.size(); ++i) {
    const bool top = i == 0;
    const bool bottom = i + 1 == canvas.rows.size();
    const std::string label = top      ? number(canvas.y.high())
                              : bottom ? number(canvas.y.low())
                                       : "";
    std::string line = fmt::format("{} {}{}", padded(label, kLabel, true),
                                   top || bottom ? kTick : kAxis, canvas.rows[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).append("\n");
  }
  const int columns = static_cast<int>(canvas.rows.front().size());
  out.append(kLabel + 1, ' ').append(kCorner);
  for (int i = 0; i < columns; ++i) {
    out += kFloor;
  }
  const std::string left = number(canvas.x.low());
  const std::string right = number(canvas.x.high());
  const int middle = columns - display_width(left) - display_width(right) - 2;
  const std::string title = shortened(printable(chart.x.title), middle);
  const int before = (middle - display_width(title)) / 2;
  out.append("\n").append(kLabel + 2, ' ').append(left).append(1, ' ');
  out.append(padded(padded(title, before + display_width(title), true), middle, false));
  return out.append(" ").append(right).append("\n");
}

/// The first lines of `chart` that can be drawn; makes the axes of `canvas` hold them.
std::vector<const ChartLine*> choose_lines(const Chart& chart, Canvas& canvas) {
  std::vector<const ChartLine*> lines;
  for (const ChartLine& line : chart.lines) {
    const std::vector<ChartPoint> points = drawable(line, canvas);
    if (lines.size() == kLines || line.emphasis == Emphasis::struck || points.empty()) {
      continue;
    }
    lines.push_back(&line);
    for (const ChartPoint& point : points) {
      canvas.x.include(point.x);
      canvas.y.include(point.y);
    }
  }
  return lines;
}

bool has_marked(const ChartLine* line) {
  return std::any_of(line->points.begin(), line->points.end(),
                     [](const ChartPoint& point) { return point.marked; });
}

/// Which letter is which line, and what is not shown; an entry is not broken where it fits.
std::string key(const std::vector<const ChartLine*>& lines, const Chart& chart, int width) {
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    entries.push_back(
        fmt::format("{} {}", static_cast<char>('a' + i), printable(lines[i]->name)));
  }
  if (std::any_of(lines.begin(), lines.end(), has_marked)) {
    entries.emplace_back("capitals: recommended");
  }
  if (chart.lines.size() > lines.size()) {
    entries.push_back(
        fmt::format("{} more in the HTML report", chart.lines.size() - lines.size()));
  }
  std::string out;
  std::string line;
  for (const std::string& entry : entries) {
    if (!line.empty() && display_width(line) + 3 + display_width(entry) > width) {
      out.append(line).append("\n");
      line.clear();
    }
    line += line.empty() ? entry : "   " + entry;
    line = shortened(line, width);
  }
  return out.append(line).append("\n");
}

}  // namespace

std::string text_plot(const Chart& chart, const TerminalStyle& style) {
  const int columns = std::min(style.width, kWidest) - kLabel - 2;
  const std::string blank(static_cast<std::size_t>(columns), ' ');
  Canvas canvas{Scale(chart.x.logarithmic, columns), Scale(chart.y.logarithmic, kRows),
                std::vector<std::string>(kRows, blank)};
  const std::vector<const ChartLine*> lines = choose_lines(chart, canvas);
  const std::string title = shortened(printable(chart.title), style.width);
  std::string out = Ink(style.colour).bold(title) + "\n";
  if (lines.empty()) {
    return out + "(nothing to plot)\n";
  }
  draw_guides(chart, canvas);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    draw(*lines[i], static_cast<char>('a' + i), canvas);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    mark(*lines[i], static_cast<char>('A' + i), canvas);
  }
  return out + framed(canvas, chart) + key(lines, chart, style.width);
}

}  // namespace halfwatt
