#include "progress/expression.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

std::string error_of(const std::string& text) {
  const auto expression = Expression::parse("--progress-regex", text, "step");
  return expression ? "" : expression.error().message;
}

TEST(Expression, finds_its_groups) {
  const auto expression = *Expression::parse(
      "--progress-regex", "step (?P<step>\\d+)/(?P<total>\\d+) n=(?P<items>\\d+)", "step");
  const auto match = expression.match("at step 5/10 n=160.", true);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->step, "5");
  EXPECT_EQ(match->total, "10");
  EXPECT_EQ(match->items, "160");
  EXPECT_EQ(match->loss, std::nullopt);
  EXPECT_FALSE(expression.match("at step x", true));
}

TEST(Expression, takes_its_only_group_as_the_one_that_is_needed) {
  const auto expression = *Expression::parse("--progress-regex", "iter (\\d+)", "step");
  EXPECT_EQ(expression.match("iter 12:", true)->step, "12");
}

TEST(Expression, does_not_take_a_number_that_may_go_on) {
  const auto expression = *Expression::parse("--progress-regex", "iter (\\d+)", "step");
  EXPECT_FALSE(expression.match("iter 12", false));
  EXPECT_EQ(expression.match("iter 120 ", false)->step, "120");
}

TEST(Expression, says_in_one_line_what_is_wrong_with_it) {
  EXPECT_EQ(error_of("step (\\d+"),
            "--progress-regex 'step (\\d+': missing ): step (\\d+; needed an expression as RE2 "
            "takes it (no lookaround, no backreference)");
  EXPECT_NE(error_of("(?<=step )(\\d+)").find("RE2"), std::string::npos);
  EXPECT_NE(error_of("step \\d+").find("(?P<step>...)"), std::string::npos);
  EXPECT_NE(error_of("(a)(b)").find("no group is called step"), std::string::npos);
  EXPECT_NE(error_of("((a{1000}){1000}){1000}(b)"), "");
}

}  // namespace
}  // namespace halfwatt
