// Decoding no more than is wanted, resized as it comes: the same pixels as of the whole
// picture, and the same files refused.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "engine/data/augment.h"
#include "engine/data/preprocess.h"
#include "engine/data/refusal.h"

namespace halfwatt {
namespace {

std::int64_t one_of(Rng& rng, std::int64_t count) {
  return static_cast<std::int64_t>(rng.next() % static_cast<std::uint64_t>(count));
}

Box random_box(Rng& rng, std::int64_t width, std::int64_t height) {
  Box box;
  box.left = one_of(rng, width);
  box.top = one_of(rng, height);
  box.width = 1 + one_of(rng, width - box.left);
  box.height = 1 + one_of(rng, height - box.top);
  return box;
}

std::vector<std::uint8_t> pixels_in(const Image& image, const Box& box) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t row = box.top; row < box.top + box.height; ++row) {
    const auto first = image.pixels.begin() + 3 * (row * image.width + box.left);
    pixels.insert(pixels.end(), first, first + 3 * box.width);
  }
  return pixels;
}

Result<Image> decoded_part(const std::string& file, const ResizedPart& wanted) {
  return decode_image(bytes_of(file), "f", {}, [wanted](auto...) { return wanted; });
}
/// As large as it is in the picture.
Result<Image> decoded_part(const std::string& file, const Box& box) {
  return decoded_part(file, whole(Resizing{box, box.width, box.height}));
}

std::vector<JpegRecipe> recipes() {
  std::vector<JpegRecipe> all;
  for (const auto& [wide, high] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(4, 1),
        std::pair(4, 2), std::pair(2, 4), std::pair(1, 4)}) {
    for (int kind = 0; kind < 4; ++kind) {
      JpegRecipe recipe;
      recipe.wide = wide;
      recipe.high = high;
      recipe.progressive = kind == 1;
      recipe.arithmetic = kind == 2;
      recipe.apart = kind == 3;
      all.push_back(recipe);
    }
  }
  for (const int components : {1, 4}) {
    all.emplace_back().components = components;
  }
  return all;
}

TEST(DecodePart, has_the_pixels_of_the_whole_picture) {
  Rng rng(7);
  for (const JpegRecipe& recipe : recipes()) {
    for (const auto& [width, height] : {std::pair(150, 131), std::pair(64, 48)}) {
      const std::string jpeg = jpeg_of(drawn_image(width, height), recipe);
      const Image all = decoded(jpeg);
      for (int i = 0; i < 60; ++i) {
        const Box box = random_box(rng, width, height);
        const auto part = decoded_part(jpeg, box);
        ASSERT_TRUE(part) << part.error().message;
        ASSERT_EQ(part->width, box.width);
        ASSERT_EQ(part->pixels, pixels_in(all, box))
            << recipe.wide << recipe.high << recipe.progressive << recipe.arithmetic
            << recipe.apart << recipe.components << " " << box.left << " " << box.top << " "
            << box.width << " " << box.height << " of " << width << "x" << height;
      }
    }
  }
}

TEST(DecodePart, of_the_smallest_pictures_is_that_pixel) {
  for (const auto& [width, height] : {std::pair(1, 1), std::pair(3, 1), std::pair(1, 20)}) {
    const std::string jpeg = jpeg_of(drawn_image(width, height));
    const Box last = {width - 1, height - 1, 1, 1};
    EXPECT_EQ(decoded_part(jpeg, last)->pixels, pixels_in(decoded(jpeg), last));
  }
}

TEST(DecodePart, of_a_turned_picture_is_of_the_picture_as_it_is_shown) {
  const std::string turned = with_segment(jpeg_of(drawn_image(90, 70)), exif_segment(6));
  const Box box = {5, 60, 20, 10};  // below what is stored
  const auto part = decoded_part(turned, box);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->pixels, pixels_in(decoded(turned), box));
  EXPECT_TRUE(part->turned);
}

// libjpeg smooths blocks whose last bits never come.
TEST(DecodePart, of_a_progressive_picture_without_its_last_scans_is_smoothed_alike) {
  JpegRecipe recipe;
  recipe.progressive = true;
  const std::string jpeg = jpeg_of(drawn_image(90, 70), recipe);
  const std::string rough = jpeg.substr(0, jpeg.rfind("\xff\xc4")) + "\xff\xd9";
  const Image all = decoded(rough);
  EXPECT_NE(all.pixels, decoded(jpeg).pixels);
  Rng rng(10);
  for (int i = 0; i < 200; ++i) {
    const Box box = random_box(rng, 90, 70);
    EXPECT_EQ(decoded_part(rough, box)->pixels, pixels_in(all, box));
  }
}

TEST(DecodePart, of_a_png_is_that_part_too) {
  const Image image = drawn_image(9, 7);
  EXPECT_EQ(decoded_part(png_of(image), Box{1, 1, 2, 2})->pixels,
            pixels_in(image, {1, 1, 2, 2}));
}

TEST(DecodePart, is_what_a_resize_of_the_whole_picture_makes) {
  Rng rng(11);
  for (const JpegRecipe& recipe : recipes()) {
    const std::string jpeg = jpeg_of(drawn_image(150, 131), recipe);
    const Image all = decoded(jpeg);
    for (int i = 0; i < 40; ++i) {
      const Resizing how = {random_box(rng, 150, 131), 1 + one_of(rng, 200),
                            1 + one_of(rng, 200),
                            i % 2 == 0 ? Filter::bilinear : Filter::bicubic,
                            i % 4 < 2 ? PassOrder::rows : PassOrder::pillow13};
      const ResizedPart wanted = {how, random_box(rng, how.width, how.height)};
      const auto part = decoded_part(jpeg, wanted);
      ASSERT_TRUE(part) << part.error().message;
      ASSERT_EQ(part->pixels, resize_part(all, wanted).pixels)
          << how.from.width << "x" << how.from.height << " to " << how.width << "x"
          << how.height;
    }
  }
}

TEST(DecodePart, is_all_that_an_evaluation_shows) {
  Rng rng(8);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t width = 1 + one_of(rng, 160);
    const std::int64_t height = 1 + one_of(rng, 160);
    Preprocessing how;
    how.size = 1 + one_of(rng, 64);
    how.crop = i % 2 == 0 ? 0.875 : 0.5;
    how.filter = i % 3 == 0 ? Filter::bilinear : Filter::bicubic;
    how.order = i % 5 == 0 ? PassOrder::pillow13 : PassOrder::rows;
    const std::string jpeg = jpeg_of(drawn_image(width, height));
    const auto part = decoded_part(jpeg, evaluation_part(width, height, how));
    ASSERT_TRUE(part);
    EXPECT_EQ(framed(*part, how.size).pixels, evaluation_view(decoded(jpeg), how).pixels)
        << width << "x" << height << " to " << how.size;
  }
}

TEST(DecodePart, is_all_that_a_training_shows) {
  const std::string jpeg = jpeg_of(drawn_image(150, 131));
  const Image all = decoded(jpeg);
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const TrainingView view = training_view({}, 150, 131, {1, 0, sample});
    EXPECT_EQ(decoded_part(jpeg, part_of(view, 32))->pixels, pixels_of(all, view, 32).pixels);
  }
}

TEST(DecodePart, refuses_what_is_cut_anywhere) {
  for (const bool progressive : {false, true}) {
    JpegRecipe recipe;
    recipe.progressive = progressive;
    const std::string jpeg = jpeg_of(drawn_image(40, 48), recipe);
    for (std::size_t bytes = 3; bytes < jpeg.size(); ++bytes) {
      const auto part = decoded_part(jpeg.substr(0, bytes), Box{2, 3, 4, 5});
      ASSERT_FALSE(part) << bytes;
      EXPECT_TRUE(part.error().message.starts_with("f: ends after ")) << part.error().message;
    }
  }
}

TEST(DecodePart, refuses_just_what_is_refused_as_a_whole) {
  Rng rng(9);
  int refusals = 0;
  for (int i = 0; i < 3000; ++i) {
    JpegRecipe recipe;
    recipe.progressive = i % 4 == 1;
    recipe.arithmetic = i % 4 == 2;
    std::string jpeg = jpeg_of(drawn_image(64, 80), recipe);
    const std::size_t pixels = marker_at(jpeg, 0xda);
    jpeg[pixels + rng.next() % (jpeg.size() - pixels)] = static_cast<char>(rng.next());
    const auto all = decode_image(bytes_of(jpeg), "f", {});
    const Box box = random_box(rng, 64, 80);
    const auto part = decoded_part(jpeg, box);
    ASSERT_EQ(!part, !all) << (all ? part.error().message : all.error().message);
    refusals += all ? 0 : 1;
    if (all) {
      ASSERT_EQ(part->pixels, pixels_in(*all, box));
    }
  }
  EXPECT_GT(refusals, 100);
}

}  // namespace
}  // namespace halfwatt
