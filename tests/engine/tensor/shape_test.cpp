#include "engine/tensor/shape.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(Shape, counts_its_elements_and_rows) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}.elements()), 24);
  EXPECT_EQ((Shape{2, 3, 4}.rows()), 6);
  EXPECT_EQ((Shape{2, 0}.rows()), 0);
}

TEST(Shape, reads_as_people_write_it) {
  EXPECT_EQ(text(Shape{128, 768}), "128x768");
  EXPECT_EQ(text(Shape()), "scalar");
}

TEST(Shape, spreads_extents_of_one) {
  EXPECT_EQ(broadcast(Shape{8, 197, 768}, Shape{1, 197, 768}), (Shape{8, 197, 768}));
  EXPECT_EQ(broadcast(Shape{768}, Shape{8, 197, 768}), (Shape{8, 197, 768}));
  EXPECT_EQ(broadcast(Shape(), Shape{3}), Shape{3});
  EXPECT_EQ(broadcast(Shape{2}, Shape{3}), std::nullopt);
}

TEST(ShapeDeathTest, has_six_extents_at_most) {
  EXPECT_DEATH((Shape{1, 1, 1, 1, 1, 1, 1}), "more than six");
  EXPECT_DEATH((Shape{-1}), "negative");
}

}  // namespace
}  // namespace halfwatt
