#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "measure/series.h"

namespace halfwatt {

/// What somebody published about a series: the limit that keeps a share of its speed.
struct Claim {
  Labels labels;  ///< of the series it is about
  double percent = 0;
  Watts limit;
};

/// Reads a CSV with the columns `percent` and `claimed_w`; every other column is a label.
/// Errors: bad input, as one line with file, line and column.
Result<std::vector<Claim>> import_claims(std::string_view csv, const std::string& file);

}  // namespace halfwatt
