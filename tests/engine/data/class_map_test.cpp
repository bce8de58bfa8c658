#include "engine/data/class_map.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

const ClassMap kPets({"cat", "dog", "hen"});

TEST(ClassMap, has_no_difference_to_itself) { EXPECT_EQ(kPets.compare(kPets), std::nullopt); }

TEST(ClassMap, tells_the_first_label_that_means_something_else) {
  EXPECT_EQ(kPets.compare(ClassMap({"cat", "hen", "dog"})),
            R"(class 1 is "dog" here and "hen" there)");
}

TEST(ClassMap, tells_the_class_that_is_missing_there) {
  EXPECT_EQ(kPets.compare(ClassMap({"cat", "dog"})),
            R"(3 classes here and 2 there: class 2, "hen", is only here)");
}

TEST(ClassMap, tells_the_class_that_is_missing_here) {
  EXPECT_EQ(ClassMap({"cat"}).compare(kPets),
            R"(1 classes here and 3 there: class 1, "dog", is only there)");
}

TEST(ClassMap, tells_a_difference_within_one_line_whatever_the_names) {
  EXPECT_EQ(ClassMap({"a\nb"}).compare(ClassMap({"a\x1b[31m"})),
            R"(class 0 is "a\nb" here and "a\u001b[31m" there)");
}

TEST(ClassMap, numbers_classes_that_have_no_names) {
  EXPECT_EQ(ClassMap::numbered(3).names(), (std::vector<std::string>{"0", "1", "2"}));
}

}  // namespace
}  // namespace halfwatt
