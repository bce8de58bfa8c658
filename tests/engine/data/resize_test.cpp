// Resizing against Pillow to the pixel (tests/golden/data/resized.py), by every resampler that
// this machine can run.

#include "engine/data/resize.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "engine/data/pictures.h"
#include "engine/formats/safetensors.h"

namespace halfwatt {
namespace {

constexpr Filter kFilters[] = {Filter::box, Filter::bilinear, Filter::bicubic};

Filter filter_named(std::string_view word) {
  return word == "box" ? Filter::box : word == "bilinear" ? Filter::bilinear : Filter::bicubic;
}

/// A name of resized.safetensors: SEED,WxH[+LEFT+TOP+WxH]/FILTER/WxH.
struct Case {
  std::uint64_t seed = 0;
  std::int64_t width = 0, height = 0;
  Resizing how;

  explicit Case(const std::string& name) {
    const std::string from = name.substr(0, name.find('/'));
    const std::string rest = name.substr(from.size() + 1);
    Box& box = how.from;
    const int read = std::sscanf(from.c_str(), "%lu,%ldx%ld+%ld+%ld+%ldx%ld", &seed, &width,
                                 &height, &box.left, &box.top, &box.width, &box.height);
    if (read == 3) {
      box = {0, 0, width, height};
    }
    how.filter = filter_named(rest.substr(0, rest.find('/')));
    std::sscanf(rest.c_str() + rest.find('/'), "/%ldx%ld", &how.width, &how.height);
  }
};

std::vector<std::string> names_of_resamplers() {
  std::vector<std::string> names;
  for (auto one = resamplers(); *one != nullptr; ++one) {
    names.emplace_back((*one)->name);
  }
  return names;
}

class EveryResampler : public testing::TestWithParam<std::string> {
 protected:
  const Resampler& with() const {
    auto one = resamplers();
    while ((*one)->name != GetParam()) {
      ++one;
    }
    return **one;
  }
};

/// Makes every picture of a file of tests/golden/data, and returns how many there are.
std::size_t expect_pixels_of(const std::string& golden,
                             PassOrder order,
                             const Resampler& with) {
  const auto file = SafetensorsFile::open("tests/golden/data/" + golden);
  EXPECT_TRUE(file) << golden;
  for (const StoredTensor& stored : file->header().tensors) {
    Case test(stored.name);
    test.how.order = order;
    const Image made =
        resize_part(drawn_picture(test.seed, test.width, test.height), whole(test.how), with);
    const auto wanted = file->read(stored);
    const auto pixels = wanted->as<std::uint8_t>();
    EXPECT_EQ(made.pixels, std::vector(pixels.begin(), pixels.end())) << stored.name;
  }
  return file->header().tensors.size();
}

TEST_P(EveryResampler, makes_the_pixels_that_pillow_makes) {
  EXPECT_EQ(expect_pixels_of("resized.safetensors", PassOrder::rows, with()), 96U);
}
TEST_P(EveryResampler, makes_the_pixels_that_pillow_13_makes_of_tall_pictures) {
  EXPECT_EQ(expect_pixels_of("resized_pillow13.safetensors", PassOrder::pillow13, with()), 15U);
}

TEST_P(EveryResampler, makes_any_part_of_a_result_as_the_whole_has_it) {
  const Image image = drawn_picture(7, 61, 83);
  Rng rng(3);
  const auto upto = [&](std::int64_t count) {
    return static_cast<std::int64_t>(rng.next() % static_cast<std::uint64_t>(count));
  };
  for (int turn = 0; turn < 200; ++turn) {
    const Resizing how = {{2, 1, 57, 80},
                          1 + upto(90),
                          1 + upto(90),
                          kFilters[turn % 3],
                          turn % 2 == 0 ? PassOrder::rows : PassOrder::pillow13};
    const Image all = resize_part(image, whole(how));
    Box part = {upto(how.width), upto(how.height), 0, 0};
    part.width = 1 + upto(how.width - part.left);
    part.height = 1 + upto(how.height - part.top);
    const Image some = resize_part(image, {how, part}, with());
    ASSERT_EQ(some.width, part.width);
    ASSERT_EQ(some.height, part.height);
    for (std::int64_t row = 0; row < part.height; ++row) {
      const auto* from = all.pixels.data() + ((part.top + row) * how.width + part.left) * 3;
      ASSERT_TRUE(
          std::equal(from, from + part.width * 3, some.pixels.data() + row * part.width * 3))
          << "row " << row << " of turn " << turn;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Resize,
                         EveryResampler,
                         testing::ValuesIn(names_of_resamplers()),
                         [](const auto& test) { return test.param; });

std::vector<int> resized_row(const std::vector<int>& row, std::int64_t width, Filter filter) {
  const Image made =
      resize(grey_row(row), {0, 0, static_cast<std::int64_t>(row.size()), 1}, width, 1, filter);
  std::vector<int> reds;
  for (std::size_t at = 0; at < made.pixels.size(); at += 3) {
    reds.push_back(made.pixels[at]);
  }
  return reds;
}

TEST(Resize, makes_pillows_overshoot_at_an_edge) {
  EXPECT_EQ(resized_row({0, 0, 255, 255}, 8, Filter::bicubic),
            (std::vector{0, 0, 0, 52, 203, 255, 255, 255}));
}
TEST(Resize, widens_its_window_when_it_shrinks) {
  EXPECT_EQ(resized_row({0, 0, 0, 255, 255, 0, 0, 0}, 4, Filter::bicubic),
            (std::vector{0, 138, 138, 0}));
  EXPECT_EQ(resized_row({0, 10, 20, 30, 200, 50, 60, 70}, 3, Filter::bilinear),
            (std::vector{11, 85, 72}));
}
TEST(Resize, keeps_a_picture_that_stays_as_large) {
  const Image image = drawn_picture(1, 37, 21);
  for (const Filter filter : kFilters) {
    EXPECT_EQ(resize(image, whole(image), 37, 21, filter).pixels, image.pixels);
  }
}
TEST(Resize, keeps_one_colour_through_any_change_of_size) {
  const Image image = {50, 40, std::vector<std::uint8_t>(std::size_t{50} * 40 * 3, 201)};
  for (const Filter filter : kFilters) {
    for (const std::int64_t side : {1, 3, 39, 224}) {
      const Image made = resize(image, whole(image), side, side + 1, filter);
      EXPECT_EQ(made.pixels, std::vector<std::uint8_t>(
                                 static_cast<std::size_t>(side * (side + 1) * 3), 201));
    }
  }
}
TEST(Resize, takes_sides_of_thousands_of_pixels_to_one) {
  const Image wide = {20000, 2, std::vector<std::uint8_t>(std::size_t{20000} * 2 * 3, 255)};
  EXPECT_EQ(resize(wide, whole(wide), 1, 1, Filter::bicubic).pixels,
            (std::vector<std::uint8_t>{255, 255, 255}));
  const Image tall = {2, 20000, std::vector<std::uint8_t>(std::size_t{20000} * 2 * 3, 255)};
  EXPECT_EQ(resize(tall, whole(tall), 1, 1, Filter::bicubic).pixels,
            (std::vector<std::uint8_t>{255, 255, 255}));
}
TEST(ResizeDeathTest, refuses_a_box_that_leaves_the_picture) {
  const Image image = drawn_picture(1, 8, 8);
  EXPECT_DEATH(resize(image, {4, 0, 5, 8}, 4, 4, Filter::box), "the box is within the image");
  EXPECT_DEATH(resize(image, {0, 0, 0, 8}, 4, 4, Filter::box), "the box is within the image");
}

}  // namespace
}  // namespace halfwatt
