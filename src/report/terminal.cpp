#include "report/terminal.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "report/ink.h"
#include "report/text_layout.h"
#include "report/text_plot.h"
#include "report/text_table.h"

namespace halfwatt {
namespace {

constexpr int kNarrowestTerminal = 40;

/// Lines of wrapped text, the second and later ones indented below `mark`.
std::string hanging(std::string_view mark, std::string_view text, int width) {
  const int indent = display_width(mark);
  std::string out;
  for (const std::string& line : wrapped(text, width - indent)) {
    out += out.empty() ? std::string(mark) : std::string(static_cast<std::size_t>(indent), ' ');
    out.append(line).append("\n");
  }
  return out;
}

std::string underlined(std::string_view text, char stroke, const Ink& ink, int width) {
  std::string out;
  int widest = 0;
  for (const std::string& line : wrapped(text, width)) {
    widest = std::max(widest, display_width(line));
    out.append(ink.bold(line)).append("\n");
  }
  return out.append(static_cast<std::size_t>(widest), stroke).append("\n");
}

/// Applies `paint` to each line, so that an attribute never spans a line end.
template <class Paint>
std::string by_line(std::string_view lines, Paint paint) {
  std::string out;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    out.append(paint(lines.substr(0, end))).append("\n");
    lines.remove_prefix(end + 1);
  }
  return out;
}

/// The blocks of a document as text, one after the other.
class TextWriter {
 public:
  explicit TextWriter(const TerminalStyle& style)
      : style_(style), ink_(style.colour), plots_left_(style.plots) {}

  void operator()(const Heading& heading) {
    // Held back until something follows: its part may be nothing but details.
    heading_ = underlined(heading.text, '-', ink_, style_.width);
  }
  void operator()(const Paragraph& paragraph) {
    const bool struck = paragraph.emphasis == Emphasis::struck && !paragraph.text.empty();
    const std::string text = struck ? "~" + paragraph.text + "~" : paragraph.text;
    append(by_line(hanging("", text, style_.width), [&](std::string_view line) {
      return ink_.emphasized(line, paragraph.emphasis);
    }));
  }
  void operator()(const Note& note) {
    const std::string_view mark = note.warning ? "warning: " : "note: ";
    append_together(by_line(hanging(mark, note.text, style_.width), [&](std::string_view line) {
      return note.warning ? ink_.warning(line) : std::string(line);
    }));
  }
  void operator()(const Table& table) {
    if (!table.details) {
      append(text_table(table, style_));
    }
  }
  void operator()(const Chart& chart) {
    if (plots_left_ > 0) {
      --plots_left_;
      append(text_plot(chart, style_));
    } else {
      append_together(
          hanging("chart: ", chart.title + " (drawn in the HTML report)", style_.width));
    }
  }
  void append(std::string_view lines) {
    for (const std::string_view part : {std::string_view(heading_), lines}) {
      out_.append(out_.empty() || part.empty() ? "" : "\n").append(part);
    }
    heading_.clear();
    together_ = false;
  }

  const std::string& text() const { return out_; }

 private:
  /// Like append, but without a blank line between two such lines.
  void append_together(std::string_view lines) {
    if (together_ && heading_.empty()) {
      out_ += lines;
    } else {
      append(lines);
    }
    together_ = true;
  }

  const TerminalStyle& style_;
  Ink ink_;
  int plots_left_;
  bool together_ = false;
  std::string heading_;
  std::string out_;
};

}  // namespace

std::string render_terminal(const Document& document, const TerminalStyle& style) {
  TerminalStyle usable = style;
  usable.width = std::max(style.width, kNarrowestTerminal);
  TextWriter writer(usable);
  if (!document.title.empty()) {
    const std::string provenance =
        document.provenance.empty() ? "" : " [" + document.provenance + "]";
    writer.append(
        underlined(document.title + provenance, '=', Ink(usable.colour), usable.width));
  }
  for (const Block& block : document.blocks) {
    std::visit(writer, block);
  }
  return writer.text();
}

}  // namespace halfwatt
