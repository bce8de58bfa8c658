#include <gtest/gtest.h>

#include "engine/data/source.h"
#include "engine/formats/folder.h"

namespace halfwatt {
namespace {

TEST(PixelCsv, is_a_source_of_grey_images) {
  const Folder folder;
  const auto source =
      open_pixel_csv(folder.write("a.csv", "0,8,16,4,1\n1,2,3,4,0\n"), {1, 2, 16});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 2);
  EXPECT_EQ((*source)->classes().names(), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ((*source)->label(0), 1);
  EXPECT_EQ((*source)->name(1), folder.path("a.csv").string() + " image 2");
  const auto image = (*source)->read(0);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->width, 2);
  EXPECT_EQ(image->pixels,
            (std::vector<std::uint8_t>{0, 0, 0, 128, 128, 128, 255, 255, 255, 64, 64, 64}));
}

TEST(PixelCsv, is_a_source_of_coloured_images_channel_by_channel) {
  const Folder folder;
  const auto source =
      open_pixel_csv(folder.write("a.csv", "1,2,3,4,5,6,7,8,9,10,11,12,0\n"), {3, 2, 255});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->read(0)->pixels,
            (std::vector<std::uint8_t>{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12}));
}

TEST(PixelCsv, keeps_every_byte_of_pixels_up_to_255) {
  const Folder folder;
  std::string text;
  for (int value = 0; value < 256; ++value) {
    text += std::to_string(value) + ",0\n";
  }
  const auto source = open_pixel_csv(folder.write("a.csv", text), {1, 1, 255});
  ASSERT_TRUE(source) << source.error().message;
  for (int value = 0; value < 256; ++value) {
    EXPECT_EQ((*source)->read(value)->pixels[0], value);
  }
}

TEST(PixelCsv, reads_the_digits) {
  const auto source = open_pixel_csv("data/digits.csv.gz", {});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 1797);
  EXPECT_EQ((*source)->classes().size(), 10);
}

TEST(PixelCsv, refuses_images_that_are_neither_grey_nor_rgb) {
  const Folder folder;
  const auto source = open_pixel_csv(folder.write("a.csv", "1,1,0\n"), {2, 1, 16});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().message, folder.path("a.csv").string() +
                                        ": images of 2 channels; needed 1 (grey) or 3 (RGB)");
}

TEST(PixelCsv, refuses_a_pixel_that_is_no_number) {
  const auto set = parse_pixel_csv("1,nan,3,4,0\n", "a.csv", {1, 2, 16});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, "a.csv:1: pixel 2 of 4, needs 0 to 16");
}

TEST(PixelCsv, refuses_a_gzipped_file_that_ends_early) {
  const Folder folder;
  // Every line is there: what is missing is the checksum.
  const std::string whole = read_file("data/digits.csv.gz");
  const auto path = folder.write("a.csv.gz", whole.substr(0, whole.size() - 8));
  const auto set = read_pixel_csv(path, {});
  ASSERT_FALSE(set);
  EXPECT_TRUE(set.error().message.starts_with(path.string() + ": "));
  EXPECT_NE(set.error().message.find("unexpected end of file"), std::string::npos)
      << set.error().message;
}

TEST(Split, holds_out_the_same_share_of_every_label) {
  std::vector<std::int64_t> labels(100, 0);
  labels.insert(labels.end(), 50, 2);
  const Split split = stratified(labels, 0.2, 1);
  EXPECT_EQ(split.train.size(), 120U);
  EXPECT_EQ(split.held_out.size(), 30U);
  EXPECT_EQ(std::ranges::count_if(split.held_out, [](std::int64_t at) { return at >= 100; }),
            10);
}

}  // namespace
}  // namespace halfwatt
