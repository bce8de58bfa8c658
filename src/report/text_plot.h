#pragma once

#include <string>

#include "report/document.h"
#include "report/terminal.h"

namespace halfwatt {

/// A small plot of the first lines of `chart` that are not struck out: each line is drawn with
/// its letter, marked points with the capital. Below it say which letter is which.
std::string text_plot(const Chart& chart, const TerminalStyle& style);

}  // namespace halfwatt
