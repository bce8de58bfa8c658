#include "tune/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "tune/csv_bytes.h"

namespace halfwatt {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kQuotedBytes = 40;  // of a cell, in a message

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return is_blank(c) || is_line_end(c); };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string copy(text);
  std::transform(copy.begin(), copy.end(), copy.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return copy;
}

}  // namespace

/// Walks the text once; quoted cells are unescaped in place, since that only shortens them.
class CsvParser {
 public:
  CsvParser(std::string_view bytes, std::string file, const CsvLimits& limits)
      : limits_(limits) {
    table_.file_ = std::move(file);
    table_.text_.assign(bytes.begin(), bytes.end());
  }

  Result<CsvTable> parse() {
    skip_comments();
    if (auto done = parse_header(); !done) {
      return done.error();
    }
    while (at_ < size()) {
      if (auto done = parse_row(); !done) {
        return done.error();
      }
    }
    if (table_.lines_.empty()) {
      return table_.header_error("a header and no rows below it");
    }
    return std::move(table_);
  }

 private:
  std::size_t size() const { return table_.text_.size(); }
  char* data() { return table_.text_.data(); }
  bool at_line_end() { return at_ < size() && is_line_end(data()[at_]); }

  Error error(std::string_view text) const {
    return bad_input(fmt::format("{}:{}: {}", one_line(table_.file_), row_line_, text));
  }

  /// An error in the cell that is being read.
  Error cell_error(std::string_view text) const {
    const std::size_t column = row_.size();
    const bool named = column < table_.names_.size() && !table_.names_[column].empty();
    return error(fmt::format(
        "column {}: {}",
        named ? one_line(table_.names_[column], kQuotedBytes) : std::to_string(column + 1),
        text));
  }

  /// Steps over LF, CRLF or CR.
  void skip_line_end() {
    const bool pair = data()[at_] == '\r' && at_ + 1 < size() && data()[at_ + 1] == '\n';
    at_ += pair ? 2 : 1;
    ++line_;
  }

  void skip_blanks() {
    while (at_ < size() && is_blank(data()[at_])) {
      ++at_;
    }
  }

  void skip_comments() {
    const std::string_view text(data(), size());
    if (text.starts_with(kByteOrderMark)) {
      at_ += kByteOrderMark.size();
    }
    while (at_ < size()) {
      const std::size_t start = at_;
      skip_blanks();
      const bool comment = at_ < size() && data()[at_] == '#';
      while (comment && at_ < size() && !is_line_end(data()[at_])) {
        ++at_;
      }
      if (!at_line_end()) {
        at_ = comment ? at_ : start;
        return;
      }
      skip_line_end();
    }
  }

  /// The cells of the next row into row_.
  Result<void> parse_record() {
    row_.clear();
    row_start_ = at_;
    row_line_ = line_;
    while (true) {
      if (row_.size() == limits_.columns) {
        return error(fmt::format("more than {} columns", limits_.columns));
      }
      skip_blanks();
      const bool quoted = at_ < size() && data()[at_] == '"';
      if (auto done = quoted ? parse_quoted() : parse_plain(); !done) {
        return done;
      }
      if (at_ - row_start_ > limits_.row_bytes) {
        return error(fmt::format("a row longer than {} kB", limits_.row_bytes >> 10U));
      }
      if (at_ == size()) {
        return {};
      }
      if (at_line_end()) {
        skip_line_end();
        return {};
      }
      ++at_;  // the comma
    }
  }

  Result<void> parse_plain() {
    const std::size_t begin = at_;
    while (at_ < size() && data()[at_] != ',' && !is_line_end(data()[at_])) {
      if (data()[at_] == '"') {
        return cell_error("a quote inside a cell; put the cell in quotes and double the quote");
      }
      ++at_;
    }
    row_.push_back(trimmed({data() + begin, at_ - begin}));
    return {};
  }

  Result<void> parse_quoted() {
    const std::size_t begin = ++at_;
    std::size_t end = begin;
    while (true) {
      if (at_ == size() || at_ - row_start_ > limits_.row_bytes) {
        return cell_error(at_ == size()
                              ? "the quote that opens here is never closed"
                              : "the quote that opens here is not closed for too long");
      }
      if (data()[at_] == '"') {
        const bool doubled = at_ + 1 < size() && data()[at_ + 1] == '"';
        if (!doubled) {
          break;
        }
        ++at_;
      }
      line_ += data()[at_] == '\n' ? 1 : 0;
      data()[end++] = data()[at_++];
    }
    ++at_;
    skip_blanks();
    if (at_ < size() && data()[at_] != ',' && !at_line_end()) {
      return cell_error("text after the closing quote");
    }
    row_.push_back(trimmed({data() + begin, end - begin}));
    return {};
  }

  Result<void> parse_header() {
    if (at_ == size()) {
      return bad_input(one_line(table_.file_) + ": empty; needed a header and rows");
    }
    if (data()[at_] == '{' || data()[at_] == '[') {
      row_line_ = line_;
      return error("JSON, not CSV; records of halfwatt end in .jsonl");
    }
    if (auto done = parse_record(); !done) {
      return done;
    }
    table_.header_line_ = row_line_;
    if (std::all_of(row_.begin(), row_.end(), [](auto cell) { return cell.empty(); })) {
      return error("a header without a name");
    }
    const auto is_number = [](std::string_view cell) { return parse_number(cell).has_value(); };
    if (std::all_of(row_.begin(), row_.end(), is_number)) {
      return error(
          "no header: the first row holds numbers; needed names such as power_limit_w");
    }
    if (row_.size() == 1) {
      if (auto done = refuse_other_separators(row_.front()); !done) {
        return done;
      }
    }
    std::set<std::string> seen;
    for (const auto name : row_) {
      if (!name.empty() && !seen.insert(lower(name)).second) {
        return error(fmt::format("column {} twice", one_line(name, kQuotedBytes)));
      }
    }
    table_.names_ = row_;
    return {};
  }

  Result<void> refuse_other_separators(std::string_view header) const {
    for (const auto& [separator, spoken] : {std::pair(';', "semicolons"), {'\t', "tabs"}}) {
      if (header.find(separator) != std::string_view::npos) {
        return error(fmt::format("cells are separated by {}; needed commas", spoken));
      }
    }
    return {};
  }

  Result<void> parse_row() {
    if (auto done = parse_record(); !done) {
      return done;
    }
    const auto is_empty = [](std::string_view cell) { return cell.empty(); };
    if (std::all_of(row_.begin(), row_.end(), is_empty)) {
      return {};
    }
    const std::size_t needed = table_.columns();
    if (row_.size() < needed) {
      const bool last = at_ == size() && !is_line_end(data()[at_ - 1]);
      return cell_error(fmt::format("missing: {} of {} cells{}", row_.size(), needed,
                                    last ? ", and the file ends in this row" : ""));
    }
    if (row_.size() > needed) {
      return error(
          fmt::format("{} cells where the header names {}; put quotes around a cell "
                      "that holds a comma",
                      row_.size(), needed));
    }
    if (table_.rows() == limits_.rows) {
      return error(fmt::format("more than {} rows", limits_.rows));
    }
    table_.cells_.insert(table_.cells_.end(), row_.begin(), row_.end());
    table_.lines_.push_back(row_line_);
    return {};
  }

  CsvLimits limits_;
  CsvTable table_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t row_line_ = 1;
  std::size_t row_start_ = 0;
  std::vector<std::string_view> row_;
};

Result<CsvTable> CsvTable::read(std::string_view bytes,
                                std::string file,
                                const CsvLimits& limits) {
  if (bytes.size() > limits.file_bytes) {
    return bad_input(
        fmt::format("{}: larger than {} MiB", one_line(file), limits.file_bytes >> 20U));
  }
  if (auto text = check_text(bytes, file); !text) {
    return text.error();
  }
  return CsvParser(bytes, std::move(file), limits).parse();
}

Result<double> CsvTable::positive(std::size_t row,
                                  std::size_t column,
                                  std::string_view needed) const {
  const std::string_view text = cell(row, column);
  const auto refused = [&](std::string_view why) {
    return error(row, column,
                 fmt::format("'{}' {}; needed {}", one_line(text, kQuotedBytes), why, needed));
  };
  if (text.empty()) {
    return error(row, column, fmt::format("empty; needed {}", needed));
  }
  const auto number = parse_number(text);
  if (!number) {
    const bool with_unit = text[0] >= '0' && text[0] <= '9' &&
                           text.find_first_of(" WwsmJ%") != std::string_view::npos;
    return refused(with_unit ? "is not a number without its unit" : "is not a number");
  }
  if (!std::isfinite(*number)) {
    return refused("is not finite");
  }
  if (*number <= 0) {
    return refused(*number < 0 ? "is negative" : "is zero");
  }
  return *number;
}

Error CsvTable::error(std::size_t row, std::size_t column, std::string_view text) const {
  const std::string name = names_[column].empty() ? std::to_string(column + 1)
                                                  : one_line(names_[column], kQuotedBytes);
  return bad_input(fmt::format("{}:{}: column {}: {}", one_line(file_), line(row), name, text));
}

Error CsvTable::header_error(std::string_view text) const {
  return bad_input(fmt::format("{}:{}: {}", one_line(file_), header_line_, text));
}

std::optional<double> parse_number(std::string_view cell) {
  if (cell.starts_with('+') && !cell.starts_with("+-")) {
    cell.remove_prefix(1);
  }
  double value = 0;
  const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (fault != std::errc() || end != cell.data() + cell.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace halfwatt
