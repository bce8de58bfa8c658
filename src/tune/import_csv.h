#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "measure/series.h"
#include "tune/import_options.h"

namespace halfwatt {

/// A recorded file as series, with what a reader of the answer should know about the reading.
struct Imported {
  std::vector<Series> series;        ///< in the order in which the file begins them
  std::vector<std::string> remarks;  ///< one line each, beginning with the file's name
  std::string source;                ///< who recorded it, from the sidecar; empty: not told
  std::string terms;                 ///< under which terms, likewise
};

/// A file that is in memory already.
struct CsvText {
  std::string_view csv;
  std::string_view notes;  ///< the sidecar's JSON; empty: none
  std::string file;        ///< how messages and Series::source name it
};

/// Reads recorded measurements (docs/csv.md says which columns) and, where `FILE.notes.json`
/// lies beside `FILE.csv`, what it tells about them.
/// A row is one Measurement of one step: work.steps is 1 and energy is that of one step.
/// Errors: bad input, as one line with file, line and column.
Result<Imported> import_csv(const std::filesystem::path& path,
                            const ImportOptions& options = {});
Result<Imported> import_csv(const CsvText& text, const ImportOptions& options = {});

/// The sidecar of `csv`: "caps.notes.json" of "caps.csv".
std::filesystem::path notes_path(const std::filesystem::path& csv);

}  // namespace halfwatt
