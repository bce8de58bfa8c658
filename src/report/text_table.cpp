#include "report/text_table.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

#include "report/ink.h"
#include "report/text_layout.h"

namespace halfwatt {
namespace {

constexpr int kGap = 2;         // columns between two columns
constexpr int kNarrowest = 10;  // a text column is not shortened below this
constexpr std::string_view kRule = "\xE2\x94\x80";

// Struck text is put between tildes: plain ASCII, one column each side, and it survives pipes
// and copying. Combining strokes (U+0336) misplace themselves in many terminal fonts, and a
// leading minus or a parenthesis would read as a negative number.
std::string struck(std::string_view text) { return "~" + std::string(text) + "~"; }
constexpr std::string_view kStruckKey = "~x~ is struck out: it must not be used.";

struct TextColumn {
  std::string title;
  bool numeric = true;
  bool has_struck = false;
  int wanted = 0;     ///< title on one line
  int compact = 0;    ///< title wrapped
  int narrowest = 0;  ///< text shortened
  int width = 0;
  std::vector<Cell> cells;
};

bool is_struck(const Cell& cell) {
  return cell.emphasis == Emphasis::struck && !cell.text.empty();
}

/// What `cell` shows in `width` columns, not padded. In a numeric column that has a struck cell
/// the others end one column earlier, so that digits stay below digits.
std::string shown(const Cell& cell, const TextColumn& column, int width) {
  if (is_struck(cell)) {
    return struck(shortened(cell.text, width - 2));
  }
  const bool make_room = column.numeric && column.has_struck && !cell.text.empty();
  return make_room ? shortened(cell.text, width - 1) + " " : shortened(cell.text, width);
}

std::vector<TextColumn> read_columns(const Table& table) {
  std::vector<TextColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    TextColumn column;
    column.title = printable(table.columns[c].title);
    column.numeric = table.columns[c].numeric;
    for (const auto& row : table.rows) {
      Cell cell = c < row.size() ? row[c] : Cell{};
      cell.text = printable(cell.text);
      column.has_struck |= is_struck(cell);
      column.cells.push_back(std::move(cell));
    }
    int widest = 0;
    for (const Cell& cell : column.cells) {
      const int unlimited = display_width(cell.text) + 2;
      widest = std::max(widest, display_width(shown(cell, column, unlimited)));
    }
    column.wanted = std::max({1, widest, display_width(column.title)});
    column.compact = std::max({1, widest, longest_word(column.title)});
    column.narrowest =
        column.numeric
            ? column.compact
            : std::min(column.compact, std::max(kNarrowest, longest_word(column.title)));
    columns.push_back(std::move(column));
  }
  return columns;
}

using Columns = std::vector<TextColumn*>;

int total(const Columns& columns, int TextColumn::*width) {
  return std::accumulate(
      columns.begin(), columns.end(), -kGap,
      [width](int sum, const TextColumn* c) { return sum + c->*width + kGap; });
}

/// Sets the widths of columns that fit `width` at their narrowest.
void fit(const Columns& columns, int width) {
  const bool one_line_titles = total(columns, &TextColumn::wanted) <= width;
  for (TextColumn* column : columns) {
    column->width = one_line_titles ? column->wanted : column->compact;
  }
  while (total(columns, &TextColumn::width) > width) {
    TextColumn* widest = nullptr;
    for (TextColumn* column : columns) {
      if (column->width > column->narrowest && (!widest || column->width > widest->width)) {
        widest = column;
      }
    }
    if (!widest) {
      break;
    }
    --widest->width;
  }
  for (TextColumn* column : columns) {  // space left over goes to titles, from the left
    while (column->width < column->wanted && total(columns, &TextColumn::width) < width) {
      ++column->width;
    }
  }
}

/// `all` in groups that fit `width`, each beginning with the first column.
std::vector<Columns> groups(std::vector<TextColumn>& all, int width) {
  for (TextColumn& column : all) {  // a column wider than the page is cut, come what may
    column.narrowest = std::min(column.narrowest, width);
    column.compact = std::min(column.compact, width);
    column.wanted = std::min(column.wanted, width);
  }
  std::vector<Columns> result;
  for (TextColumn& column : all) {
    if (!result.empty()) {
      Columns with = result.back();
      with.push_back(&column);
      if (total(with, &TextColumn::narrowest) <= width) {
        result.back() = std::move(with);
        continue;
      }
      Columns next = {&all.front(), &column};
      if (total(next, &TextColumn::narrowest) <= width) {
        result.push_back(std::move(next));
        continue;
      }
    }
    result.push_back({&column});
  }
  return result;
}

void append_line(std::string line, std::string& out) {
  line.erase(line.find_last_not_of(' ') + 1);
  out.append(line).append("\n");
}

void append_titles(const Columns& columns, const Ink& ink, std::string& out) {
  std::vector<std::vector<std::string>> titles;
  std::size_t lines = 0;
  for (const TextColumn* column : columns) {
    titles.push_back(wrapped(column->title, column->width));
    lines = std::max(lines, titles.back().size());
  }
  for (std::size_t line = 0; line < lines; ++line) {
    std::string text;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::size_t above = lines - titles[c].size();  // titles stand on the rule
      const std::string part = line < above ? "" : titles[c][line - above];
      text += padded(part, columns[c]->width, columns[c]->numeric) + std::string(kGap, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out.append(ink.bold(text)).append("\n");
  }
  std::string rules;
  for (const TextColumn* column : columns) {
    for (int i = 0; i < column->width; ++i) {
      rules += kRule;
    }
    rules.append(kGap, ' ');
  }
  rules.erase(rules.find_last_not_of(' ') + 1);
  out.append(ink.faint(rules)).append("\n");
}

void append_rows(const Columns& columns, const Ink& ink, std::string& out) {
  for (std::size_t row = 0; row < columns.front()->cells.size(); ++row) {
    std::string line;
    for (const TextColumn* column : columns) {
      const Cell& cell = column->cells[row];
      std::string text =
          padded(shown(cell, *column, column->width), column->width, column->numeric);
      text.append(kGap, ' ');
      // Only what can be seen is painted, so that spaces at the end of a line can go.
      const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
      const std::size_t end = text.find_last_not_of(' ') + 1;
      line.append(text, 0, begin);
      if (begin < end) {
        line.append(ink.emphasized(text.substr(begin, end - begin), cell.emphasis));
        line.append(text, end);
      }
    }
    append_line(std::move(line), out);
  }
}

}  // namespace

std::string text_table(const Table& table, const TerminalStyle& style) {
  const Ink ink(style.colour);
  std::string out;
  if (!table.caption.empty()) {
    for (const std::string& line : wrapped(table.caption, style.width)) {
      out.append(ink.bold(line)).append("\n");
    }
  }
  if (table.rows.empty() || table.columns.empty()) {
    return out + "(no rows)\n";
  }
  std::vector<TextColumn> columns = read_columns(table);
  bool first = true;
  for (const Columns& group : groups(columns, style.width)) {
    out += first ? "" : "\n";
    first = false;
    fit(group, style.width);
    append_titles(group, ink, out);
    append_rows(group, ink, out);
  }
  const bool any_struck =
      std::any_of(columns.begin(), columns.end(),
                  [](const TextColumn& column) { return column.has_struck; });
  if (any_struck) {
    out.append(ink.faint(kStruckKey)).append("\n");
  }
  return out;
}

}  // namespace halfwatt
