#include "engine/data/natural_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace halfwatt {
namespace {

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names, natural_less);
  return names;
}

TEST(NaturalOrder, takes_digits_as_numbers) {
  EXPECT_EQ(sorted({"10", "2", "1"}), (std::vector<std::string>{"1", "2", "10"}));
  EXPECT_EQ(sorted({"c10x2", "c10x11", "c9"}),
            (std::vector<std::string>{"c9", "c10x2", "c10x11"}));
}

TEST(NaturalOrder, takes_numbers_of_any_length) {
  EXPECT_EQ(
      sorted({"100000000000000000000000001", "99999999999999999999999999"}),
      (std::vector<std::string>{"99999999999999999999999999", "100000000000000000000000001"}));
}

TEST(NaturalOrder, takes_capitals_like_small_letters) {
  EXPECT_EQ(sorted({"b", "C", "A"}), (std::vector<std::string>{"A", "b", "C"}));
}

TEST(NaturalOrder, puts_what_is_equal_so_far_by_its_bytes) {
  EXPECT_EQ(sorted({"a1", "a01", "A1"}), (std::vector<std::string>{"A1", "a01", "a1"}));
}

TEST(NaturalOrder, puts_a_beginning_before_what_goes_on) {
  EXPECT_EQ(sorted({"a1b", "a1", "a", ""}), (std::vector<std::string>{"", "a", "a1", "a1b"}));
  EXPECT_FALSE(natural_less("a", "a"));
}

}  // namespace
}  // namespace halfwatt
