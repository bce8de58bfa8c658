#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "report/chart_data.h"
#include "report/page.h"
#include "report/whole_file.h"

namespace halfwatt {
namespace {

constexpr std::size_t kContentsFrom = 4;  // headings; below, a list of contents is clutter

/// `text` for an element or a quoted attribute.
std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string_view css_class(Emphasis emphasis) {
  return emphasis == Emphasis::plain ? "" : word(emphasis);
}

/// ` class="a b"`, or nothing where both are empty.
std::string class_attribute(std::string_view first, std::string_view second = "") {
  if (first.empty() && second.empty()) {
    return "";
  }
  const std::string_view space = first.empty() || second.empty() ? "" : " ";
  return fmt::format(" class=\"{}{}{}\"", first, space, second);
}

std::string emphasized(std::string_view text, Emphasis emphasis) {
  const bool struck = emphasis == Emphasis::struck && !text.empty();
  return struck ? "<s>" + escaped(text) + "</s>" : escaped(text);
}

std::string head_row(const Table& table) {
  std::string out = "<tr>";
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>",
                       class_attribute(column.numeric ? "number" : ""), escaped(column.title));
  }
  return out + "</tr>\n";
}

std::string body_row(const Table& table, const std::vector<Cell>& cells) {
  std::string out = "<tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Cell cell = c < cells.size() ? cells[c] : Cell{};
    const bool names_row = c == 0 && !table.columns[c].numeric;
    const std::string_view tag = names_row ? "th" : "td";
    const std::string classes =
        class_attribute(table.columns[c].numeric ? "number" : "", css_class(cell.emphasis));
    out += fmt::format("<{}{}{}>{}</{}>", tag, names_row ? " scope=\"row\"" : "", classes,
                       emphasized(cell.text, cell.emphasis), tag);
  }
  return out + "</tr>\n";
}

/// In a box that scrolls by itself, so that the page never does; `label` names the box.
std::string table_box(const Table& table, std::string_view label, bool with_caption) {
  std::string out = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n",
      escaped(label));
  if (with_caption && !table.caption.empty()) {
    out += fmt::format("<caption>{}</caption>\n", escaped(table.caption));
  }
  out += "<thead>" + head_row(table) + "</thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += body_row(table, row);
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

std::string described(const Chart& chart) {
  std::string out = fmt::format("{}. Chart of {} against {}. Lines: ", chart.title,
                                chart.y.title, chart.x.title);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    out += (i > 0 ? ", " : "") + chart.lines[i].name;
    out += chart.lines[i].emphasis == Emphasis::struck ? " (struck out)" : "";
  }
  return out + ". The figures follow as a table.";
}

/// How to read what Chart.js has no words for; empty where nothing needs any.
std::string reading(const Chart& chart) {
  bool marked = false;
  bool bars = false;
  bool struck = false;
  for (const ChartLine& line : chart.lines) {
    struck |= line.emphasis == Emphasis::struck;
    for (const ChartPoint& point : line.points) {
      marked |= point.marked;
      bars |= point.low || point.high;
    }
  }
  std::string out;
  out += marked ? "Large outlined points are recommended. " : "";
  out += bars ? "Bars show intervals. " : "";
  out += struck ? "Faint lines with a name crossed out must not be used. " : "";
  return out.empty() ? "" : "<p class=\"reading\">" + out + "</p>\n";
}

/// The blocks of a document as HTML, one after the other; charts are numbered as they come.
class BodyWriter {
 public:
  void operator()(const Heading& heading) {
    headings_.push_back(heading.text);
    body_ +=
        fmt::format("<h2 id=\"part-{}\">{}</h2>\n", headings_.size(), escaped(heading.text));
  }
  void operator()(const Paragraph& paragraph) {
    body_ += fmt::format("<p{}>{}</p>\n", class_attribute(css_class(paragraph.emphasis)),
                         emphasized(paragraph.text, paragraph.emphasis));
  }
  void operator()(const Note& note) {
    body_ += note.warning ? "<p class=\"note warning\"><b>Warning:</b> " : "<p class=\"note\">";
    body_ += escaped(note.text) + "</p>\n";
  }
  void operator()(const Table& table) {
    if (!table.details) {
      body_ += table_box(table, table.caption, true);
      return;
    }
    const std::string_view unit = table.rows.size() == 1 ? "row" : "rows";
    body_ += fmt::format("<details><summary>{} ({} {})</summary>\n{}</details>\n",
                         escaped(table.caption), table.rows.size(), unit,
                         table_box(table, table.caption, false));
  }
  void operator()(const Chart& chart) {
    if (!has_points(chart)) {
      body_ += fmt::format(
          "<figure id=\"{}\">\n<figcaption>{}</figcaption>\nNothing to plot.\n"
          "</figure>\n",
          escaped(chart.id), escaped(chart.title));
      return;
    }
    body_ += fmt::format(
        "<figure id=\"{}\">\n<figcaption>{}</figcaption>\n<div class=\"chart\">\n"
        "<div class=\"plot\"><canvas data-chart=\"{}\" role=\"img\" aria-label=\"{}\"></canvas>"
        "</div>\n<div class=\"key\" role=\"group\" aria-label=\"Lines of the chart\"></div>\n"
        "</div>\n{}<details><summary>Figures as a table</summary>\n{}</details>\n</figure>\n",
        escaped(chart.id), escaped(chart.title), charts_.size(), escaped(described(chart)),
        reading(chart), table_box(chart_table(chart), "Figures: " + chart.title, false));
    charts_.push_back(&chart);
  }

  const std::string& body() const { return body_; }
  const std::vector<const Chart*>& charts() const { return charts_; }

  /// Links to the headings, where there are enough.
  std::string contents() const {
    if (headings_.size() < kContentsFrom) {
      return "";
    }
    std::string out = "<nav aria-label=\"Contents\">";
    for (std::size_t i = 0; i < headings_.size(); ++i) {
      out += fmt::format("<a href=\"#part-{}\">{}</a>", i + 1, escaped(headings_[i]));
    }
    return out + "</nav>\n";
  }

 private:
  std::string body_;
  std::vector<std::string> headings_;
  std::vector<const Chart*> charts_;
};

std::string header(const Document& document, const BodyWriter& writer) {
  std::string out = fmt::format("<h1>{}</h1>\n", escaped(document.title));
  if (!document.provenance.empty()) {
    constexpr std::array<std::string_view, 3> kKnown = {"measured", "recorded", "simulated"};
    const bool known =
        std::find(kKnown.begin(), kKnown.end(), document.provenance) != kKnown.end();
    out += fmt::format("<span{}>{}</span>\n",
                       class_attribute("badge", known ? document.provenance : ""),
                       escaped(document.provenance));
  }
  return out + writer.contents();
}

}  // namespace

std::string render_html(const Document& document) {
  BodyWriter writer;
  for (const Block& block : document.blocks) {
    std::visit(writer, block);
  }
  const std::array<std::pair<std::string_view, std::string>, 4> slots = {{
      {"{{title}}", escaped(document.title)},
      {"{{header}}", header(document, writer)},
      {"{{body}}", writer.body()},
      {"{{charts}}", chart_json(writer.charts())},
  }};
  std::string out;
  std::string_view rest = kPageHtml;
  for (const auto& [slot, text] : slots) {
    const std::size_t at = rest.find(slot);
    HALFWATT_CHECK(at != std::string_view::npos, "page.html lacks a slot");
    out.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + slot.size());
  }
  return out.append(rest);
}

Result<void> write_html(const Document& document, const std::filesystem::path& path) {
  return write_whole_file(path, render_html(document));
}

}  // namespace halfwatt
