#pragma once

#include "tune/verdict.h"

namespace halfwatt {

/// Adds to `verdict` what qualifies its figures, one sentence each.
void add_notes(SeriesVerdict& verdict, const AnalysisOptions& options);

}  // namespace halfwatt
