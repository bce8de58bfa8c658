#include "cli/record_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/remark.h"

namespace halfwatt {

Result<RecordFile> open_record(const Invocation& invocation, const RecordHeader& header) {
  RecordFile file;
  const auto path = invocation.get("--record");
  if (!path) {
    if (invocation.has("--resume")) {
      return bad_input("--resume needs --record FILE: which record to go on with");
    }
    return file;
  }
  const bool resume = invocation.has("--resume") && std::filesystem::exists(*path);
  Record record;
  Result<RecordWriter> writer = resume ? RecordWriter::resume(*path, header, record)
                                       : RecordWriter::create(*path, header);
  if (!writer) {
    return writer.error();
  }
  if (record.dropped_last_line) {
    remark(fmt::format("{}: the last line was half written; it is measured again", *path));
  }
  file.writer.emplace(std::move(*writer));
  file.measured = std::move(record.measurements);
  return file;
}

}  // namespace halfwatt
