#pragma once

#include "report/document.h"

namespace halfwatt {

/// A document with everything that a file from elsewhere may bring into a report: markup and
/// script in labels, invalid UTF-8, charts without points, zeros on a logarithmic axis, NaN.
Document odd_document();

}  // namespace halfwatt
