#pragma once

#include <string>

#include "tune/verdict.h"

namespace halfwatt {

/// The verdict as one JSON object, schema halfwatt.verdict/1, indented, with a line end.
/// docs/verdict.md describes it. Unknown values are null.
std::string verdict_json(const Verdict& verdict);

/// The verdict as CSV: one row a series and share.
std::string verdict_csv(const Verdict& verdict);

}  // namespace halfwatt
