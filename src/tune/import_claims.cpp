#include "tune/import_claims.h"

#include <fmt/format.h>

#include <optional>

#include "tune/csv.h"
#include "tune/csv_bytes.h"

namespace halfwatt {

Result<std::vector<Claim>> import_claims(std::string_view csv, const std::string& file) {
  const auto table = CsvTable::read(csv, file);
  if (!table) {
    return table.error();
  }
  std::optional<std::size_t> percent;
  std::optional<std::size_t> limit;
  std::vector<std::size_t> labels;
  for (std::size_t column = 0; column < table->columns(); ++column) {
    if (table->name(column) == "percent") {
      percent = column;
    } else if (table->name(column) == "claimed_w") {
      limit = column;
    } else {
      labels.push_back(column);
    }
  }
  if (!percent || !limit) {
    return table->header_error("needed columns percent and claimed_w");
  }
  std::vector<Claim> claims;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const auto share = table->positive(row, *percent, "percent such as 90");
    const auto watts = table->positive(row, *limit, "watts such as 300");
    if (!share || !watts) {
      return !share ? share.error() : watts.error();
    }
    Claim claim{{}, *share, Watts(*watts)};
    for (const std::size_t column : labels) {
      claim.labels.emplace_back(one_line(table->name(column)),
                                one_line(table->cell(row, column)));
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

}  // namespace halfwatt
