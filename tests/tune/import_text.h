#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "tune/import_csv.h"

namespace halfwatt {

/// A folder of this process alone, so that tests of two builds may run at the same time.
inline std::filesystem::path temporary_folder() {
  auto folder = std::filesystem::path(testing::TempDir()) /
                ("halfwatt_import_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return folder;
}

/// The series in `csv`, which the messages call caps.csv; a failure where it is refused.
inline Imported imported(std::string_view csv,
                         const ImportOptions& options = {},
                         std::string_view notes = "") {
  auto result = import_csv(CsvText{csv, notes, "caps.csv"}, options);
  if (!result) {
    ADD_FAILURE() << "refused: " << result.error().message;
    return {};
  }
  return *std::move(result);
}

/// The one line with which `csv` is refused; "accepted" where it is not.
inline std::string refusal(std::string_view csv,
                           const ImportOptions& options = {},
                           std::string_view notes = "") {
  const auto result = import_csv(CsvText{csv, notes, "caps.csv"}, options);
  if (result) {
    return "accepted";
  }
  EXPECT_EQ(exit_code(result.error().kind), 2);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  return result.error().message;
}

}  // namespace halfwatt
