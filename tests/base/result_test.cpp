#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace halfwatt {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) {
    return bad_input("odd");
  }
  return number / 2;
}

Result<void> must_be_even(int number) {
  if (number % 2 != 0) {
    return Error{ErrorKind::workload, "odd"};
  }
  return {};
}

TEST(Result, holds_a_value_or_an_error) {
  ASSERT_TRUE(half(6));
  EXPECT_EQ(*half(6), 3);
  ASSERT_FALSE(half(7));
  EXPECT_EQ(half(7).error().message, "odd");
  EXPECT_TRUE(must_be_even(2));
  EXPECT_EQ(must_be_even(3).error().kind, ErrorKind::workload);
}

TEST(Result, gives_away_what_can_only_be_moved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, lets_its_value_be_changed_in_place) {
  Result<std::string> result = std::string("half");
  *result += "watt";
  result->push_back('s');
  EXPECT_EQ(result.value(), "halfwatts");
}

TEST(ResultDeathTest, ends_the_program_when_asked_for_what_it_does_not_hold) {
  EXPECT_DEATH(static_cast<void>(*half(7)), "value\\(\\) of a Result that holds an error");
  EXPECT_DEATH(static_cast<void>(half(6).error()),
               "error\\(\\) of a Result that holds a value");
  EXPECT_DEATH(static_cast<void>(must_be_even(2).error()), "that succeeded");
}

TEST(CheckDeathTest, names_the_place_without_the_folder_it_was_built_in) {
  EXPECT_DEATH(HALFWATT_CHECK(1 > 2, "order"),
               "halfwatt: tests/base/result_test.cpp:[0-9]+: broken invariant: order");
}

TEST(ExitCode, is_the_documented_one_for_every_kind) {
  EXPECT_EQ(exit_code(ErrorKind::bad_input), 2);
  EXPECT_EQ(exit_code(ErrorKind::device), 3);
  EXPECT_EQ(exit_code(ErrorKind::workload), 4);
  EXPECT_EQ(exit_code(ErrorKind::interrupted), 5);
  EXPECT_EQ(exit_code(ErrorKind::not_restored), 6);
}

}  // namespace
}  // namespace halfwatt
