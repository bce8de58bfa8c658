#include "tune/import_split.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tune/import_columns.h"
#include "tune/labels.h"

namespace halfwatt {
namespace {

// A label has whole sweeps behind each of its values: at least three rows, and at least 40 % of
// the limits of its neighbours (Zeus' and club-3090's labels reach 54 to 100 %; what was seen
// at n limits reaches 1/n).
constexpr double kNumberRows = 3;
constexpr double kNumberFill = 0.4;
// Words are labels unless almost every row has its own, as comments do.
constexpr double kWordRows = 2;
constexpr double kWordFill = 0.6;

/// For each row the number of the group it is in; groups are numbered from 0.
using Groups = std::vector<std::size_t>;

Groups by_cell(const CsvTable& table, std::size_t column) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  Groups groups(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    groups[row] = numbers.try_emplace(table.cell(row, column), numbers.size()).first->second;
  }
  return groups;
}

std::size_t count(const Groups& groups) {
  return groups.empty() ? 0 : 1 + *std::ranges::max_element(groups);
}

/// Groups of rows that agree in both.
Groups crossed(const Groups& left, const Groups& right) {
  const std::size_t width = count(right);  // rows are few enough for the product of two counts
  std::unordered_map<std::size_t, std::size_t> numbers;
  Groups groups(left.size());
  for (std::size_t row = 0; row < left.size(); ++row) {
    const std::size_t both = left[row] * width + right[row];
    groups[row] = numbers.try_emplace(both, numbers.size()).first->second;
  }
  return groups;
}

/// How many different groups of `fine`, which divides `coarse`, are in each group of `coarse`.
std::vector<std::size_t> parts(const Groups& coarse, const Groups& fine) {
  std::vector<std::size_t> parts(count(coarse));
  std::vector<bool> seen(count(fine));
  for (std::size_t row = 0; row < coarse.size(); ++row) {
    if (!seen[fine[row]]) {
      seen[fine[row]] = true;
      ++parts[coarse[row]];
    }
  }
  return parts;
}

/// What a column does to groups of rows, summed over those in which it changes.
struct Split {
  double rows_per_value = 0;
  double fill = 0;  ///< share of (value, limit) pairs that were measured
  bool constant = true;
};

Split split(const Groups& groups, const Groups& cells, const Groups& x) {
  const Groups by_value = crossed(groups, cells);
  const auto values = parts(groups, by_value);
  const auto limits = parts(groups, crossed(groups, x));
  const auto pairs = parts(groups, crossed(by_value, x));
  std::vector<std::size_t> rows(values.size());
  for (const std::size_t group : groups) {
    ++rows[group];
  }
  double all_rows = 0;
  double all_values = 0;
  double all_pairs = 0;
  double possible = 0;
  for (std::size_t group = 0; group < values.size(); ++group) {
    if (values[group] < 2) {
      continue;
    }
    all_rows += static_cast<double>(rows[group]);
    all_values += static_cast<double>(values[group]);
    all_pairs += static_cast<double>(pairs[group]);
    possible += static_cast<double>(values[group]) * static_cast<double>(limits[group]);
  }
  if (all_values == 0) {
    return {};
  }
  return {all_rows / all_values, all_pairs / possible, false};
}

/// Whether the name tells a unit, so that the numbers are readings; a clock may be set as well.
bool is_reading(std::string_view name) {
  const auto meaning = meaning_of(name);
  if (meaning &&
      (meaning->role == ColumnRole::sm_clock || meaning->role == ColumnRole::mem_clock)) {
    return false;
  }
  const std::string plain = plain_name(name);
  const std::size_t last = plain.rfind('_');
  return last != std::string::npos && unit_called(plain.substr(last + 1)) != nullptr;
}

/// An uncertain column in the order of judgement, which must not depend on the file's: words
/// first, then numbers, those with few values before those with many.
struct Candidate {
  bool numeric = false;
  std::size_t values = 0;
  std::string name;
  std::size_t column = 0;
  Groups cells;
};

bool is_label(const Candidate& candidate, const Split& split) {
  if (split.constant) {
    return true;
  }
  if (!candidate.numeric) {
    return split.rows_per_value >= kWordRows || split.fill >= kWordFill;
  }
  return !is_reading(candidate.name) && split.rows_per_value >= kNumberRows &&
         split.fill >= kNumberFill;
}

}  // namespace

bool is_numeric(const CsvTable& table, std::size_t column) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto cell = table.cell(row, column);
    if (!cell.empty() && !parse_number(cell)) {
      return false;
    }
  }
  return true;
}

std::vector<std::size_t> find_labels(const CsvTable& table,
                                     std::size_t x,
                                     std::span<const std::size_t> known,
                                     std::span<const std::size_t> uncertain) {
  Groups groups(table.rows());
  for (const std::size_t column : known) {
    groups = crossed(groups, by_cell(table, column));
  }
  std::vector<Candidate> candidates;
  for (const std::size_t column : uncertain) {
    Groups cells = by_cell(table, column);
    candidates.push_back({is_numeric(table, column), count(cells),
                          plain_name(table.name(column)), column, std::move(cells)});
  }
  std::ranges::sort(candidates, {}, [](const Candidate& candidate) {
    return std::tuple(candidate.numeric, candidate.values, candidate.name, candidate.column);
  });
  const Groups limits = by_cell(table, x);
  std::vector<std::size_t> labels;
  for (const Candidate& candidate : candidates) {
    if (is_label(candidate, split(groups, candidate.cells, limits))) {
      labels.push_back(candidate.column);
      groups = crossed(groups, candidate.cells);
    }
  }
  std::ranges::sort(labels);
  return labels;
}

}  // namespace halfwatt
