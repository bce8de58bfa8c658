#pragma once

#include <string>

#include "report/document.h"
#include "report/terminal.h"

namespace halfwatt {

/// `table` with its caption as lines that line up within `style.width` columns. Where it is
/// too wide, first headings wrap, then text columns are shortened with an ellipsis, then it is
/// set as several tables that repeat the first column.
std::string text_table(const Table& table, const TerminalStyle& style);

}  // namespace halfwatt
