#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "engine/data/refusal.h"

namespace halfwatt {
namespace {

using namespace std::string_literals;

const std::string kEnd = png_chunk("IEND", "");

std::string small_png() { return png_of(drawn_image(9, 7)); }

std::uint8_t over_white(unsigned value, unsigned alpha) {
  return static_cast<std::uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

TEST(Png, of_sixteen_bits_is_scaled_and_rounded_for_every_value) {
  std::string rows;
  for (unsigned value = 0; value < 65536; ++value) {
    rows += {static_cast<char>(value >> 8U), static_cast<char>(value)};
  }
  const Image image = decoded(png_of({256, 256, 16, 0}, rows));
  for (std::size_t value = 0; value < 65536; ++value) {
    ASSERT_EQ(image.pixels[3 * value], (value * 255 + 32767) / 65535) << value;
  }
}

TEST(Png, that_is_interlaced_gives_the_same_pixels) {
  for (const auto& [width, height] : {std::pair(19, 13), std::pair(1, 1), std::pair(3, 9)}) {
    const Image image = drawn_image(width, height);
    EXPECT_EQ(decoded(interlaced_png_of(image, 255)).pixels, image.pixels);
    Image blended = image;
    for (std::uint8_t& each : blended.pixels) {
      each = over_white(each, 100);
    }
    EXPECT_EQ(decoded(interlaced_png_of(image, 100)).pixels, blended.pixels);
  }
}

TEST(Png, shows_white_where_it_is_transparent_whatever_colour_is_hidden_there) {
  const std::string rows =
      "\x00\x00\x00\x00"s   // black that nobody sees
      "\x0a\x14\x1e\xff"s;  // opaque
  EXPECT_EQ(decoded(png_of({2, 1, 8, 6}, rows)).pixels,
            (std::vector<std::uint8_t>{255, 255, 255, 10, 20, 30}));
}

TEST(Png, cut_anywhere_is_refused_with_the_place) {
  const std::string png = small_png();
  for (std::size_t bytes = 8; bytes < png.size(); ++bytes) {
    const std::string why = refusal(png.substr(0, bytes));
    EXPECT_TRUE(why.starts_with("ends after " + std::to_string(bytes) + " bytes, ")) << why;
  }
  EXPECT_EQ(refusal(png.substr(0, 20)),
            "ends after 20 bytes, in its header; needs a whole PNG, to its IEND");
  EXPECT_EQ(refusal(png.substr(0, png.size() - 12)),
            "ends after " + std::to_string(png.size() - 12) +
                " bytes, at row 7 of 7; needs a whole PNG, to its IEND");
}

TEST(Png, that_unpacks_to_too_many_pixels_is_refused_by_its_header) {
  // 900 million pixels in 109445 bytes.
  const std::string rows(std::size_t{30'000} * 3'751, '\0');
  const std::string bomb =
      png_start({30'000, 30'000, 1, 0}) + png_chunk("IDAT", deflated(rows)) + kEnd;
  EXPECT_LT(bomb.size(), 120'000U);
  EXPECT_EQ(cheap_refusal(bomb), "30000x30000 are 900000000 pixels; needs at most 178956970");
}

TEST(Png, of_more_pixels_than_its_bytes_can_hold_is_refused_before_it_is_allocated) {
  const std::string lie = png_start({13'000, 13'000}) + png_chunk("IDAT", deflated("")) + kEnd;
  EXPECT_EQ(cheap_refusal(lie), "13000x13000 pixels in " + std::to_string(lie.size()) +
                                    " bytes; needs at least 491279");
}

TEST(Png, with_sides_that_make_no_number_is_refused) {
  EXPECT_NE(refusal(png_start({0, 5}) + kEnd), "");
  EXPECT_NE(refusal(png_start({0x80000000U, 5}) + kEnd), "");
  EXPECT_TRUE(refusal(png_start({0x7fffffffU, 0x7fffffffU}) + png_chunk("IDAT", "") + kEnd)
                  .starts_with("2147483647x2147483647 are 4611686014132420609 pixels"));
}

TEST(Png, with_a_wrong_checksum_is_refused) {
  std::string data = small_png();
  const std::size_t at = data.find("IDAT") + 10;
  data[at] = static_cast<char>(data[at] ^ 1);
  EXPECT_NE(refusal(data), "");
  std::string header = small_png();
  header[29] = static_cast<char>(header[29] ^ 1);
  EXPECT_EQ(refusal(header),
            "libpng found \"IHDR: CRC error\" in its header; needs a valid PNG");
}

TEST(Png, without_its_pixels_or_its_palette_is_refused) {
  EXPECT_NE(refusal(png_start({9, 7}) + kEnd), "");
  const std::string why = refusal(png_of({9, 7, 8, 3}, std::string(63, '\0')));
  EXPECT_NE(why.find("Missing PLTE before IDAT\" in its header"), why.npos) << why;
}

TEST(Png, of_fewer_rows_than_its_header_says_is_not_filled_up) {
  const std::string rows(std::size_t{28} * 5, '\0');  // five of seven, with their filter bytes
  EXPECT_EQ(refusal(png_start({9, 7}) + png_chunk("IDAT", deflated(rows)) + kEnd),
            "libpng found \"Not enough image data\" at row 5 of 7; needs a valid PNG");
}

TEST(Png, may_have_texts_of_any_length_that_nobody_unpacks) {
  const Image image = drawn_image(9, 7);
  const std::string rows(image.pixels.begin(), image.pixels.end());
  const std::string bomb =
      png_chunk("zTXt", "Comment\0\0"s + deflated(std::string(64 << 20, '\0')));
  const std::string broken = png_chunk("zTXt", "Comment\0\0no zlib"s);
  EXPECT_EQ(decoded(png_of({9, 7}, rows, bomb + broken)).pixels, image.pixels);
}

TEST(Png, may_have_junk_behind_its_end) {
  EXPECT_EQ(decoded(small_png() + "junk").pixels, decoded(small_png()).pixels);
}

TEST(Png, damaged_anywhere_gives_a_picture_or_one_line) {
  Rng rng(5);
  DecodePolicy policy;
  policy.most_pixels = 10'000;
  const std::string whole = interlaced_png_of(drawn_image(9, 7), 100);
  for (int i = 0; i < 5000; ++i) {
    std::string png = whole;
    for (int flips = 0; flips < 3; ++flips) {
      png[8 + rng.next() % (png.size() - 8)] = static_cast<char>(rng.next());
    }
    refusal(png, policy);
  }
}

}  // namespace
}  // namespace halfwatt
