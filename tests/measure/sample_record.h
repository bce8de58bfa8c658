#pragma once

#include <string>

#include "measure/record.h"

namespace halfwatt {

/// A header with every field filled in.
RecordHeader full_header();
/// One with as little as a header may have.
RecordHeader bare_header();

/// A measurement with every field filled in, with numbers that need all digits of a double.
Measurement full_measurement();
/// One with as little as a measurement may have.
Measurement bare_measurement();

/// Text of a record with full_header() and `windows` times full_measurement().
std::string record_text(int windows);

}  // namespace halfwatt
