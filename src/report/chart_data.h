#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace halfwatt {

/// How the page and its script call an emphasis.
std::string_view word(Emphasis emphasis);

/// Whether `chart` has a point that can be drawn: two finite numbers.
bool has_points(const Chart& chart);

/// The figures of `charts` as the JSON array that page.js draws, fit to stand in a <script>
/// element. Points without two finite numbers are left out: JSON knows no NaN.
std::string chart_json(const std::vector<const Chart*>& charts);

/// The figures of `chart` as a table: a row for each x and a column for each line where the
/// lines share their x, otherwise a row for each point.
Table chart_table(const Chart& chart);

}  // namespace halfwatt
