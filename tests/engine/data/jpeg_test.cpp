#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/rng.h"
#include "engine/data/refusal.h"

namespace halfwatt {
namespace {

using namespace std::string_literals;

const std::string kEnd = "\xff\xd9";

std::string with_height(std::string jpeg, const std::string& two_bytes) {
  return jpeg.replace(marker_at(jpeg, 0xc0) + 5, 2, two_bytes);
}

int largest_difference(const Image& one, const Image& other) {
  EXPECT_EQ(one.pixels.size(), other.pixels.size());
  int largest = 0;
  for (std::size_t at = 0; at < one.pixels.size(); ++at) {
    largest = std::max(largest, std::abs(int{one.pixels[at]} - int{other.pixels[at]}));
  }
  return largest;
}

TEST(Jpeg, is_decoded_whatever_its_sampling_and_coding) {
  Image flat{40, 24, {}};
  for (int i = 0; i < 40 * 24; ++i) {
    flat.pixels.insert(flat.pixels.end(), {200, 100, 50});
  }
  JpegRecipe recipe;
  for (const auto& [wide, high] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(4, 1)}) {
    recipe.wide = wide;
    recipe.high = high;
    EXPECT_LE(largest_difference(decoded(jpeg_of(flat, recipe)), flat), 2) << wide << high;
  }
  JpegRecipe arithmetic;
  arithmetic.arithmetic = true;
  const Image image = drawn_image(40, 24);
  EXPECT_EQ(decoded(jpeg_of(image, arithmetic)).pixels, decoded(jpeg_of(image)).pixels);
}

TEST(Jpeg, cut_anywhere_is_refused_with_the_place) {
  for (const bool progressive : {false, true}) {
    JpegRecipe recipe;
    recipe.progressive = progressive;
    const std::string jpeg = jpeg_of(drawn_image(40, 48), recipe);
    for (std::size_t bytes = 3; bytes < jpeg.size(); ++bytes) {
      const std::string why = refusal(jpeg.substr(0, bytes));
      EXPECT_TRUE(why.starts_with("ends after " + std::to_string(bytes) + " bytes, ")) << why;
    }
  }
}

TEST(Jpeg, cut_says_in_which_row_it_ends) {
  const std::string jpeg = jpeg_of(drawn_image(40, 48));
  EXPECT_EQ(refusal(jpeg.substr(0, jpeg.size() - 2)),
            "ends after " + std::to_string(jpeg.size() - 2) +
                " bytes, at row 30 of 48; needs a whole JPEG, to its end marker (ff d9)");
  EXPECT_EQ(refusal(jpeg.substr(0, marker_at(jpeg, 0xc0) + 19)),
            "ends after " + std::to_string(marker_at(jpeg, 0xc0) + 19) +
                " bytes, in its header; needs a whole JPEG, to its end marker (ff d9)");
}

TEST(Jpeg, cut_and_closed_with_an_end_marker_is_not_filled_with_grey) {
  const std::string jpeg = jpeg_of(drawn_image(40, 48));
  const std::string why = refusal(jpeg.substr(0, jpeg.size() * 9 / 10) + kEnd);
  EXPECT_TRUE(why.starts_with("libjpeg found \"Corrupt JPEG data: premature end")) << why;
}

TEST(Jpeg, without_one_of_its_components_is_not_filled_with_grey) {
  JpegRecipe recipe;
  recipe.apart = true;
  const Image image = drawn_image(40, 48);
  const std::string jpeg = jpeg_of(image, recipe);
  EXPECT_EQ(decoded(jpeg).pixels, decoded(jpeg_of(image)).pixels);
  EXPECT_EQ(refusal(jpeg.substr(0, jpeg.rfind("\xff\xda")) + kEnd),
            "no scan of component 3 of 3; needs one of each");
  recipe = {};
  recipe.progressive = true;  // its brightness is in many scans, all colours in the first alone
  std::string dark = jpeg_of(image, recipe);
  const std::size_t first = marker_at(dark, 0xda);
  dark.erase(first, marker_at(dark.substr(first), 0xc4));
  EXPECT_TRUE(refusal(dark).starts_with("no scan of component 1 of 3")) << refusal(dark);
}

TEST(Jpeg, that_lies_about_its_height_is_refused) {
  const std::string jpeg = jpeg_of(drawn_image(19, 13));
  EXPECT_NE(refusal(with_height(jpeg, "\xff\xdc")), "");
  EXPECT_EQ(refusal(with_height(jpeg, "\0\0"s)).substr(0, 33),
            "libjpeg found \"Empty JPEG image (");
}

TEST(Jpeg, of_more_pixels_than_its_bytes_can_hold_is_refused_before_it_is_allocated) {
  std::string jpeg = jpeg_of(drawn_image(19, 13));
  jpeg.replace(marker_at(jpeg, 0xc0) + 5, 4, "\x34\x00\x34\x00"s);  // 13312x13312: 507 MB
  EXPECT_EQ(cheap_refusal(jpeg), "13312x13312 pixels in " + std::to_string(jpeg.size()) +
                                     " bytes; needs at least 86528");
}

TEST(Jpeg, of_more_pixels_than_allowed_is_refused_by_its_header) {
  std::string jpeg = jpeg_of(drawn_image(19, 13));
  jpeg.replace(marker_at(jpeg, 0xc0) + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_EQ(cheap_refusal(jpeg), "65500x65500 are 4290250000 pixels; needs at most 178956970");
}

TEST(Jpeg, of_ten_thousand_scans_is_refused_at_the_five_hundred_and_first) {
  JpegRecipe recipe;
  recipe.progressive = true;
  const std::string jpeg = jpeg_of(drawn_image(40, 48), recipe);
  const std::size_t first = marker_at(jpeg, 0xda);  // of all colours, with a table of its own
  const std::string scan = jpeg.substr(first, marker_at(jpeg.substr(first), 0xc4));
  std::string bomb = jpeg.substr(0, jpeg.size() - 2);
  for (int i = 0; i < 10'000; ++i) {
    bomb += scan;
  }
  EXPECT_EQ(refusal(bomb + kEnd), "more than 500 scans; needs at most that many");
  DecodePolicy policy;
  policy.most_scans = 10;
  EXPECT_EQ(decoded(jpeg, policy).width, 40);  // what libjpeg itself writes
  policy.most_scans = 9;
  EXPECT_EQ(refusal(jpeg, policy), "more than 9 scans; needs at most that many");
}

TEST(Jpeg, may_have_junk_behind_its_end_and_between_its_markers) {
  const std::string jpeg = jpeg_of(drawn_image(40, 48));
  const Image image = decoded(jpeg);
  EXPECT_EQ(decoded(jpeg + "junk" + jpeg).pixels, image.pixels);
  const std::size_t frame = marker_at(jpeg, 0xc0);
  EXPECT_EQ(decoded(jpeg.substr(0, frame) + "junk" + jpeg.substr(frame)).pixels, image.pixels);
}

TEST(Jpeg, may_have_nothing_before_its_start) {
  EXPECT_TRUE(refusal("junk" + jpeg_of(drawn_image(40, 48))).starts_with("starts with 6a 75"));
}

TEST(Jpeg, of_a_kind_that_no_browser_shows_is_refused_by_its_kind) {
  const std::string jpeg = jpeg_of(drawn_image(40, 48));
  const std::size_t frame = marker_at(jpeg, 0xc0);
  EXPECT_EQ(refusal(std::string(jpeg).replace(frame + 4, 1, "\x0c")),
            "12 bits a sample; needs 8");
  const std::string lossless = std::string(jpeg).replace(frame + 1, 1, "\xc3");
  EXPECT_TRUE(refusal(lossless).starts_with("libjpeg found \"")) << refusal(lossless);
  JpegRecipe two;
  two.components = 2;
  EXPECT_EQ(refusal(jpeg_of(drawn_image(40, 48), two)),
            "2 components; needs 1 (grey), 3 (colour) or 4 (CMYK)");
}

TEST(Jpeg, damaged_anywhere_gives_a_picture_or_one_line) {
  JpegRecipe recipe;
  Rng rng(5);
  DecodePolicy policy;
  policy.most_pixels = 10'000;
  for (int i = 0; i < 2000; ++i) {
    recipe.progressive = i % 2 == 1;
    std::string jpeg = jpeg_of(drawn_image(24, 17), recipe);
    for (int flips = 0; flips < 3; ++flips) {
      jpeg[3 + rng.next() % (jpeg.size() - 3)] = static_cast<char>(rng.next());
    }
    refusal(jpeg, policy);
  }
}

}  // namespace
}  // namespace halfwatt
