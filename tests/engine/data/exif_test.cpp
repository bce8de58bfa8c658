#include "engine/data/exif.h"

#include <gtest/gtest.h>

#include "engine/data/refusal.h"

namespace halfwatt {
namespace {

using namespace std::string_literals;

/// The block in an APP1 segment: all behind its marker and length.
std::string block(int orientation) { return exif_segment(orientation).substr(4); }

std::optional<int> read(const std::string& text) { return exif_orientation(bytes_of(text)); }

std::string patched(std::size_t at, const std::string& bytes) {
  return block(6).replace(at, bytes.size(), bytes);
}

TEST(Exif, finds_the_orientation_in_either_byte_order) {
  EXPECT_EQ(read(block(6)), 6);
  EXPECT_EQ(read(block(6).substr(6)), 6);  // a PNG has it without the prefix
  EXPECT_EQ(read("II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0"s), 8);
}

TEST(Exif, finds_it_behind_other_tags_and_as_a_long) {
  EXPECT_EQ(read("MM\0\x2a\0\0\0\x08\0\x02"
                 "\x01\x0f\0\x02\0\0\0\x02"
                 "A\0\0\0"
                 "\x01\x12\0\x04\0\0\0\x01\0\0\0\x03"s),
            3);
}

TEST(Exif, of_a_malformed_block_is_unknown) {
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(read("Exif\0\0"s), std::nullopt);
  EXPECT_EQ(read(patched(6, "XX")), std::nullopt);                 // no byte order
  EXPECT_EQ(read(patched(8, "\0\x2b"s)), std::nullopt);            // not 42
  EXPECT_EQ(read(patched(10, "\xff\xff\xff\xff")), std::nullopt);  // directory past the end
  EXPECT_EQ(read(patched(18, "\0\x63"s)), std::nullopt);           // type 99
  EXPECT_EQ(read(patched(20, "\0\0\0\x02"s)), std::nullopt);       // two of them
  EXPECT_EQ(read(patched(24, "\0\0"s)), std::nullopt);             // 0 is no orientation
  EXPECT_EQ(read(patched(24, "\0\x09"s)), std::nullopt);           // nor is 9
  EXPECT_EQ(read(patched(16, "\x01\x13"s)), std::nullopt);         // another tag
  EXPECT_EQ(read(patched(16, "\x01\x13"s).replace(14, 2, "\xff\xff")), std::nullopt);
  for (std::size_t bytes = 0; bytes < 26; ++bytes) {
    EXPECT_EQ(read(block(6).substr(0, bytes)), std::nullopt) << bytes;
  }
}

TEST(Exif, malformed_in_a_jpeg_does_not_spoil_the_picture) {
  const std::string jpeg = jpeg_of(drawn_image(20, 10));
  const Image as_stored = decoded(jpeg);
  const std::string offset = exif_segment(6).replace(14, 4, "\xff\xff\xff\xff");
  const std::string empty = "\xff\xe1\0\x02"s;
  const std::string count = exif_segment(6).replace(18, 4, "\xff\xff\x01\x13"s);
  for (const std::string& segment : {offset, empty, count}) {
    EXPECT_EQ(decoded(with_segment(jpeg, segment)).pixels, as_stored.pixels);
  }
  // XMP has the same marker, and may come first.
  const std::string xmp = "\xff\xe1\0\x0ahttp://x"s;
  EXPECT_EQ(decoded(with_segment(jpeg, xmp + exif_segment(6))).width, 10);
}

TEST(Exif, in_a_png_counts_before_and_behind_the_pixels) {
  const Image image = drawn_image(4, 2);
  const std::string rows(image.pixels.begin(), image.pixels.end());
  const std::string exif = png_chunk("eXIf", block(6).substr(6));
  EXPECT_EQ(decoded(png_of({4, 2}, rows, exif)).width, 2);
  std::string behind = png_of({4, 2}, rows);
  behind.insert(behind.size() - 12, exif);  // IEND takes 12 bytes
  EXPECT_EQ(decoded(behind).width, 2);
}

TEST(Exif, of_a_png_takes_no_more_memory_than_it_has_bytes) {
  // Found by fuzzing: libpng 1.6.39 allocates what an eXIf chunk says to have, here 2 GB.
  const Image image = drawn_image(4, 2);
  const std::string rows(image.pixels.begin(), image.pixels.end());
  const std::string exif = block(6).substr(6);
  const std::string lie = png_of({4, 2}, rows, png_chunk("eXIf", exif).replace(0, 4, "zTXt"));
  EXPECT_TRUE(cheap_refusal(lie).starts_with("ends after ")) << refusal(lie);
  const std::string padded = png_chunk("eXIf", exif + std::string(2 << 20, '\0'));
  EXPECT_EQ(decoded(png_of({4, 2}, rows, padded)).width, 4);  // more than any EXIF: not read
}

/// The six pixels of a picture, told by their first channel.
std::string shown(int orientation) {
  Image image{3, 2, {}};
  for (const char letter : "abcdef"s) {
    image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(letter));
  }
  image = upright(std::move(image), orientation);
  std::string text;
  for (std::size_t at = 0; at < image.pixels.size(); at += 3) {
    const bool new_row = at != 0 && at / 3 % static_cast<std::size_t>(image.width) == 0;
    text += new_row ? "/" : "";
    text += static_cast<char>(image.pixels[at]);
  }
  return text;
}

TEST(Exif, turns_abc_def_as_each_orientation_says) {
  EXPECT_EQ(shown(1), "abc/def");
  EXPECT_EQ(shown(2), "cba/fed");
  EXPECT_EQ(shown(3), "fed/cba");
  EXPECT_EQ(shown(4), "def/abc");
  EXPECT_EQ(shown(5), "ad/be/cf");
  EXPECT_EQ(shown(6), "da/eb/fc");
  EXPECT_EQ(shown(7), "fc/eb/da");
  EXPECT_EQ(shown(8), "cf/be/ad");
}

}  // namespace
}  // namespace halfwatt
