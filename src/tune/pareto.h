#pragma once

#include <vector>

#include "tune/verdict.h"

namespace halfwatt {

/// Whether two series did the same job on the same device, so that they differ in choices only
/// (precision, batch, engine...) and may be compared in items per second.
bool comparable(const SeriesVerdict& a, const SeriesVerdict& b);

/// One front per group of comparable, advisable series that have energy on one basis.
std::vector<ParetoGroup> pareto_groups(const std::vector<SeriesVerdict>& series);

}  // namespace halfwatt
