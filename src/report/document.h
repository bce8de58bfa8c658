#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace halfwatt {

/// What a figure is, beside its value; every renderer shows it in its own way.
enum class Emphasis {
  plain,
  good,    ///< a recommendation
  bad,     ///< a failure
  faint,   ///< present, not important
  struck,  ///< must not be used: shown crossed out
};

struct Heading {
  std::string text;
};

struct Paragraph {
  std::string text;  ///< a newline in it starts a new line
  Emphasis emphasis = Emphasis::plain;
};

/// One line that qualifies the figures around it.
struct Note {
  std::string text;
  bool warning = false;
};

struct Cell {
  std::string text;
  Emphasis emphasis = Emphasis::plain;
};

struct Column {
  std::string title;
  bool numeric = true;  ///< right-aligned; text columns may be shortened to fit 80 columns
};

struct Table {
  std::string caption;
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};  ///< each as long as `columns`
  bool details = false;  ///< raw rows: folded away in HTML, left out in a terminal
};

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::optional<double> low = {};   ///< lower end of the error bar, in units of y
  std::optional<double> high = {};  ///< upper end
  bool marked = false;              ///< a recommended point
  std::string label = {};           ///< what a tooltip says, empty for none
};

struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points = {};
  Emphasis emphasis = Emphasis::plain;  ///< struck: faint and dashed, its name crossed out
  bool joined = true;                   ///< false: points only
};

struct Axis {
  std::string title;  ///< with its unit: "power limit (W)"
  bool logarithmic = false;
};

struct Chart {
  std::string id;  ///< unique in the document, [a-z0-9-]
  std::string title;
  Axis x = {};
  Axis y = {};
  std::vector<ChartLine> lines = {};
  std::vector<double> guides = {};  ///< horizontal reference lines, in units of y
};

using Block = std::variant<Heading, Paragraph, Note, Table, Chart>;

/// What people look at, before anyone decided whether it is a terminal or a page.
struct Document {
  std::string title;
  std::string provenance;  ///< "measured", "recorded" or "simulated": shown beside the title
  std::vector<Block> blocks = {};
};

}  // namespace halfwatt
