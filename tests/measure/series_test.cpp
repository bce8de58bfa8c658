#include "measure/series.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(Provenance, reads_back_the_word_it_writes) {
  for (const auto each : {Provenance::measured, Provenance::recorded, Provenance::simulated}) {
    EXPECT_EQ(provenance(text(each)), each) << text(each);
  }
  EXPECT_EQ(provenance("guessed"), std::nullopt);
  EXPECT_EQ(provenance(""), std::nullopt);
}

TEST(Labels, are_found_by_name_and_joined_in_the_order_of_the_file) {
  const Labels labels{{"mode", "train"}, {"precision", "fp32"}, {"batch", "160"}};
  EXPECT_EQ(label(labels, "precision"), "fp32");
  EXPECT_EQ(label(labels, "engine"), std::nullopt);
  EXPECT_EQ(text(labels), "train fp32 160");
  EXPECT_EQ(text(Labels{}), "");
}

TEST(Series, runs_along_the_power_limit_unless_told_otherwise) {
  EXPECT_EQ(Series().knob, power_limit_knob());
}

}  // namespace
}  // namespace halfwatt
