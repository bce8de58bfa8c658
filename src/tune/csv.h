#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace halfwatt {

/// Where the reader stops. The largest recorded study known (Zeus, 1,609 rows, 120 kB) is a
/// hundred times smaller than any of these.
struct CsvLimits {
  std::size_t file_bytes = std::size_t{64} << 20U;
  std::size_t row_bytes = std::size_t{64} << 10U;
  std::size_t columns = 128;
  std::size_t rows = 200'000;
};

/// A CSV file in memory: a header of distinct names and at least one row, all rows with a cell
/// for every name.
class CsvTable {
 public:
  /// Reads RFC 4180: commas, quotes, LF, CRLF or CR. Beyond it: a byte-order mark, lines that
  /// begin with # before the header, and blanks around cells are dropped, and so are rows
  /// without a single filled cell.
  /// `file`: how messages name it.
  /// Errors: bad input, as one line with file, line and column.
  static Result<CsvTable> read(std::string_view bytes,
                               std::string file,
                               const CsvLimits& limits = {});

  CsvTable(CsvTable&&) = default;
  CsvTable& operator=(CsvTable&&) = default;
  CsvTable(const CsvTable&) = delete;  // cells borrow from text_
  CsvTable& operator=(const CsvTable&) = delete;
  ~CsvTable() = default;

  const std::string& file() const { return file_; }
  std::size_t columns() const { return names_.size(); }
  std::size_t rows() const { return lines_.size(); }
  /// Empty where the header leaves a column without a name.
  std::string_view name(std::size_t column) const { return names_[column]; }
  std::string_view cell(std::size_t row, std::size_t column) const {
    return cells_[row * columns() + column];
  }
  /// The line that `row` begins on, counted from 1.
  std::size_t line(std::size_t row) const { return lines_[row]; }
  std::size_t header_line() const { return header_line_; }

  /// The number in a cell that must hold one above zero.
  /// `needed`: what it must be, with an example: "watts such as 300".
  Result<double> positive(std::size_t row, std::size_t column, std::string_view needed) const;
  /// "caps.csv:17: column power_limit_w: `text`".
  Error error(std::size_t row, std::size_t column, std::string_view text) const;
  /// "caps.csv:1: `text`", about the header.
  Error header_error(std::string_view text) const;

 private:
  friend class CsvParser;
  CsvTable() = default;

  std::string file_;
  std::vector<char> text_;  ///< a moved vector keeps its place, a moved short string does not
  std::vector<std::string_view> names_;
  std::vector<std::string_view> cells_;  ///< row after row
  std::vector<std::size_t> lines_;
  std::size_t header_line_ = 0;
};

/// The whole of `cell` as a number with a decimal point, whatever the locale; nullopt where it
/// is anything else. NaN and infinities are numbers here.
std::optional<double> parse_number(std::string_view cell);

}  // namespace halfwatt
