#include "engine/data/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "engine/data/refusal.h"

namespace halfwatt {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A PPM (P6) as Pillow writes it: `P6\nWIDTH HEIGHT\n255\n`, then RGB.
Image read_ppm(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string magic;
  int largest = 0;
  Image image;
  in >> magic >> image.width >> image.height >> largest;
  in.get();
  image.pixels.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  return image;
}

std::vector<std::filesystem::path> goldens() {
  std::vector<std::filesystem::path> found;
  for (const auto& each : std::filesystem::directory_iterator("tests/golden/data/decode")) {
    if (each.path().extension() != ".ppm") {
      found.push_back(each.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Decode, gives_pillows_pixels_for_every_kind_of_picture) {
  const auto all = goldens();
  EXPECT_EQ(all.size(), 39U);
  for (auto path : all) {
    SCOPED_TRACE(path.string());
    const Image image = decoded(read(path));
    const Image expected = read_ppm(path.replace_extension(".ppm"));
    EXPECT_EQ(image.width, expected.width);
    EXPECT_EQ(image.height, expected.height);
    EXPECT_EQ(image.pixels, expected.pixels);
  }
}

TEST(Decode, goes_by_the_first_bytes_and_not_by_the_name) {
  const Image image = drawn_image(9, 7);
  const auto png = decode_image(bytes_of(png_of(image)), "n02105855_2933.JPEG", {});
  ASSERT_TRUE(png);
  EXPECT_EQ(png->pixels, image.pixels);
}

TEST(Decode, says_how_a_file_begins_that_is_neither) {
  EXPECT_EQ(refusal("version https://git-lfs"),
            "starts with 76 65 72 73 69 6f 6e 20; needs a JPEG (ff d8 ff) or a PNG "
            "(89 50 4e 47 0d 0a 1a 0a)");
  EXPECT_TRUE(refusal("\xff\xd8").starts_with("starts with ff d8; needs a JPEG"));
  EXPECT_TRUE(refusal("").starts_with("empty; needs a JPEG"));
}

TEST(Decode, leaves_a_picture_as_it_is_stored_where_orientation_is_not_asked_for) {
  const std::string jpeg = jpeg_of(drawn_image(20, 10));
  const std::string turned = with_segment(jpeg, exif_segment(6));
  EXPECT_EQ(decoded(turned).width, 10);
  DecodePolicy as_stored;
  as_stored.apply_orientation = false;
  EXPECT_EQ(decoded(turned, as_stored).width, 20);
  EXPECT_EQ(decoded(turned, as_stored).pixels, decoded(jpeg).pixels);
}

TEST(Decode, takes_a_picture_of_exactly_as_many_pixels_as_are_allowed) {
  DecodePolicy policy;
  for (const std::string& file : {jpeg_of(drawn_image(9, 7)), png_of(drawn_image(9, 7))}) {
    policy.most_pixels = 63;
    EXPECT_EQ(decoded(file, policy).width, 9);
    policy.most_pixels = 62;
    EXPECT_EQ(refusal(file, policy), "9x7 are 63 pixels; needs at most 62");
  }
}

TEST(Decode, gives_every_thread_its_own_picture) {
  const std::string good = jpeg_of(drawn_image(64, 48));
  const std::string bad = good.substr(0, good.size() / 2);
  const Image expected = decoded(good);
  std::vector<int> mistakes(4, 0);
  std::vector<std::jthread> threads;
  threads.reserve(mistakes.size());
  for (int& mine : mistakes) {
    threads.emplace_back([&mine, &good, &bad, &expected] {
      for (int i = 0; i < 50; ++i) {
        const auto image = decode_image(bytes_of(good), "good", {});
        const auto error = decode_image(bytes_of(bad), "bad", {});
        mine += image && image->pixels == expected.pixels && !error ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(mistakes, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace halfwatt
