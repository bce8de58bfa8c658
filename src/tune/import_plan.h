#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/setting.h"
#include "tune/csv.h"
#include "tune/import_columns.h"
#include "tune/import_options.h"

namespace halfwatt {

/// A column with what it holds.
struct PlannedColumn {
  std::size_t column = 0;
  ColumnMeaning meaning;
};

/// Which column of one file is what. The order of the columns decides nothing but the order of
/// the labels.
struct ColumnPlan {
  PlannedColumn x;
  Knob knob;
  bool x_unit_given = false;  ///< by the user, who is believed
  PlannedColumn y;            ///< role time or rate
  std::optional<PlannedColumn> energy;
  std::optional<PlannedColumn> power;
  std::optional<std::size_t> batch;
  std::optional<std::size_t> device;
  std::optional<std::size_t> state;
  std::vector<PlannedColumn> observations;
  std::vector<std::size_t> labels;
  std::vector<std::string> remarks;  ///< one sentence each
};

/// Chooses the columns by their names, and where a name is unknown by what its cells do.
/// Errors: bad input that names the candidates and the flag where there is no power limit or
/// other knob, no time or rate, or more than one of either.
Result<ColumnPlan> plan_columns(const CsvTable& table, const ImportOptions& options);

}  // namespace halfwatt
