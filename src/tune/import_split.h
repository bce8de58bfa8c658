#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tune/csv.h"

namespace halfwatt {

/// Which of the `uncertain` columns, whose names say nothing, are labels that split the file
/// into series; the others hold something seen in each row. A label's value comes back at the
/// limits at which other values were measured; what was seen differs from row to row. A number
/// with a unit in its name, clocks apart, is a label only where it never changes in a series.
/// `x`: the knob's column. `known`: columns that are labels by their names.
std::vector<std::size_t> find_labels(const CsvTable& table,
                                     std::size_t x,
                                     std::span<const std::size_t> known,
                                     std::span<const std::size_t> uncertain);

/// Whether every filled cell of `column` is a number.
bool is_numeric(const CsvTable& table, std::size_t column);

}  // namespace halfwatt
