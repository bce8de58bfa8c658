#pragma once

#include <filesystem>

#include "report/document.h"

namespace halfwatt {

/// A document like the one that `analyze` makes of the study in `csv`, for looking at the
/// renderers: ten series of 34 limits, one of them struck out. Its intervals and joules are
/// made up, and it says so.
Document study_document(const std::filesystem::path& csv);

}  // namespace halfwatt
