#pragma once

#include <string>

#include "report/document.h"

namespace halfwatt {

/// What the terminal that shows a document can do.
struct TerminalStyle {
  int width = 80;  ///< columns; fewer than 40 are treated as 40
  bool colour =
      false;      ///< may be sent ANSI colours: set it for terminals only, never for files
  int plots = 1;  ///< this many charts are drawn, 17 lines each; of others only the title
};

/// `document` as plain UTF-8 text of at most `style.width` columns, the same text with and
/// without colour: struck cells are written ~290~ and explained below their table. Tables
/// marked as details are left out; the first charts become small plots of their first lines.
std::string render_terminal(const Document& document, const TerminalStyle& style);

}  // namespace halfwatt
