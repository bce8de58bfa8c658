#pragma once

#include <optional>
#include <vector>

#include "cli/command.h"
#include "measure/record.h"

namespace halfwatt {

/// The record on disk, if one is wanted, and what it held already.
struct RecordFile {
  std::optional<RecordWriter> writer;
  std::vector<Measurement> measured;
};

/// The file that --record names, new or, with --resume, gone on with. Errors: one that exists
/// without --resume, or is of something else.
Result<RecordFile> open_record(const Invocation& invocation, const RecordHeader& header);

}  // namespace halfwatt
