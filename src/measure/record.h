#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "measure/series.h"

namespace halfwatt {

/// What a record says once, in its first line; docs/record.md describes the format.
struct RecordHeader {
  std::string device_id;  ///< as --device takes it: of several cards, separated by commas
  std::string device;     ///< name of the card; of several "2 x NVIDIA A100"
  std::optional<LimitRange> limits;
  Provenance provenance = Provenance::measured;
  std::string workload;
  std::vector<std::string> command;  ///< the measured program; empty for a built-in workload
  Labels labels;
  std::vector<Knob> knobs;
  std::vector<double> keep_percent;  ///< what the sweep was asked
  std::string reference = "top";
};

/// A record that was read.
struct Record {
  RecordHeader header;
  std::vector<Measurement> measurements;
  bool dropped_last_line = false;  ///< it was half written: the machine or the program died
};

/// Reads the text of a record; `file` names it in messages. Errors: bad input, as one line with
/// file, line and field.
Result<Record> parse_record(std::string_view text, const std::string& file);
/// The same from a file.
Result<Record> read_record(const std::filesystem::path& path);
/// Whether the text begins like a record, so that a reader need not go by file names.
bool looks_like_record(std::string_view text);

/// The record as one series along its first knob.
Series to_series(const Record& record);
/// One series for each combination of values that its further knobs had, in the order in which
/// they were measured first; the values become labels.
std::vector<Series> all_series(const Record& record);

/// Writes a record, one line a measurement, each on disk before the next window begins.
class RecordWriter {
 public:
  /// Begins a new file; refuses one that exists, so that nothing is overwritten.
  static Result<RecordWriter> create(const std::filesystem::path& path,
                                     const RecordHeader& header);
  /// Goes on with an existing file, which must be of the same device, command, workload and
  /// knobs. A half-written last line is cut off; `record` receives what the file holds.
  static Result<RecordWriter> resume(const std::filesystem::path& path,
                                     const RecordHeader& header,
                                     Record& record);

  RecordWriter(RecordWriter&& other) noexcept;
  RecordWriter& operator=(RecordWriter&&) = delete;
  ~RecordWriter();

  /// Appends one line. On an error (disk full, say) the file ends with the line before.
  Result<void> append(const Measurement& measurement);

 private:
  RecordWriter(int descriptor, std::filesystem::path path);
  Result<void> append_line(const std::string& line);
  int descriptor_ = -1;
  std::filesystem::path path_;
};

}  // namespace halfwatt
