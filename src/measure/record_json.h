#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "measure/record.h"

namespace halfwatt {

/// The first line of a record, without its line end.
std::string header_line(const RecordHeader& header);
/// A further line.
std::string measurement_line(const Measurement& measurement);

/// Reads them back; `where` ("run.jsonl:3") begins every message.
Result<RecordHeader> parse_header_line(std::string_view line, const std::string& where);
Result<Measurement> parse_measurement_line(std::string_view line, const std::string& where);

/// `text` for a message: quoted, of printable characters, and shortened.
std::string in_quotes(std::string_view text);

}  // namespace halfwatt
