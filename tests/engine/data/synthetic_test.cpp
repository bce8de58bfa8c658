#include <gtest/gtest.h>

#include <cmath>

#include "engine/data/source.h"

namespace halfwatt {
namespace {

std::unique_ptr<Source> open(const Synthetic& synthetic) {
  auto source = open_synthetic(synthetic);
  EXPECT_TRUE(source) << source.error().message;
  return std::move(*source);
}

TEST(Synthetic, has_as_many_images_and_classes_as_it_is_told) {
  const auto source = open({7, 3, 16, 0});
  EXPECT_EQ(source->size(), 7);
  EXPECT_EQ(source->classes().size(), 3);
  EXPECT_EQ(source->label(5), 2);
  const auto image = source->read(6);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->width, 16);
  EXPECT_EQ(image->height, 16);
  EXPECT_EQ(image->pixels.size(), 768U);
}

TEST(Synthetic, follows_from_seed_and_place) {
  const auto one = open({2, 2, 8, 5});
  EXPECT_EQ(one->read(1)->pixels, open({9, 4, 8, 5})->read(1)->pixels);
  EXPECT_NE(one->read(1)->pixels, one->read(0)->pixels);
  EXPECT_NE(one->read(1)->pixels, open({2, 2, 8, 6})->read(1)->pixels);
}

TEST(Synthetic, has_normal_pixels) {
  const auto image = open({1, 1, 512, 0})->read(0);
  ASSERT_TRUE(image);
  const auto count = static_cast<double>(image->pixels.size());
  double sum = 0;
  double squares = 0;
  double within = 0;
  for (const std::uint8_t pixel : image->pixels) {
    sum += pixel;
    squares += (pixel - 127.5) * (pixel - 127.5);
    within += std::abs(pixel - 127.5) < 63.75 ? 1 : 0;
  }
  // 786432 of them: the mean's own deviation is 0.07.
  EXPECT_NEAR(sum / count, 127.5, 0.35);
  // What is clipped beyond two deviations takes 4 % of the deviation.
  EXPECT_NEAR(std::sqrt(squares / count), 0.96 * 63.75, 0.5);
  // One deviation holds 68.3 %; its share's own deviation is 0.05 %, a pixel's width 0.4 %.
  EXPECT_NEAR(within / count, 0.683, 0.005);
}

TEST(Synthetic, refuses_numbers_out_of_range) {
  const auto refusal = [](const Synthetic& synthetic) {
    const auto source = open_synthetic(synthetic);
    return source ? "" : source.error().message;
  };
  EXPECT_EQ(refusal({0, 1, 8, 0}), "synthetic: 0 images; needed 1 to 1000000000");
  EXPECT_EQ(refusal({1, 0, 8, 0}), "synthetic: 0 classes; needed 1 to 1000000");
  EXPECT_EQ(refusal({1, 1, 9000, 0}), "synthetic: 9000 pixels a side; needed 1 to 8192");
}

}  // namespace
}  // namespace halfwatt
