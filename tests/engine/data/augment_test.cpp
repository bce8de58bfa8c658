// Random crops against timm's (tests/golden/data/transforms.json), and how they spread.

#include "engine/data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/data/pictures.h"

namespace halfwatt {
namespace {

std::vector<TrainingView> views(const Augmentation& how,
                                std::int64_t width,
                                std::int64_t height,
                                std::uint64_t count) {
  std::vector<TrainingView> all;
  for (std::uint64_t sample = 0; sample < count; ++sample) {
    all.push_back(training_view(how, width, height, {11, 2, sample}));
  }
  return all;
}

/// The share of `views` of which `is_so`.
template <class Question>
double share(const std::vector<TrainingView>& views, Question is_so) {
  return static_cast<double>(std::count_if(views.begin(), views.end(), is_so)) /
         static_cast<double>(views.size());
}

TEST(TrainingView, is_the_crop_that_timm_makes_of_the_same_draws) {
  std::ifstream file("tests/golden/data/transforms.json");
  const auto rows = nlohmann::json::parse(file).at("crops");
  EXPECT_EQ(rows.size(), 70U);
  for (const auto& row : rows) {
    Augmentation how;
    how.least_area = row.at("least_area");
    const auto box = row.at("box").get<std::array<std::int64_t, 4>>();
    const auto view = training_view(how, row.at("width"), row.at("height"),
                                    {row.at("seed"), row.at("epoch"), row.at("sample")});
    EXPECT_EQ(view.crop, (Box{box[0], box[1], box[2], box[3]})) << row;
  }
}

TEST(TrainingView, stays_within_the_picture_whatever_its_size) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 50}, {50, 1}, {3, 2}, {640, 480}}) {
    for (const TrainingView& view : views({}, width, height, 500)) {
      const Box& crop = view.crop;
      ASSERT_GT(crop.width, 0);
      ASSERT_GT(crop.height, 0);
      ASSERT_GE(crop.left, 0);
      ASSERT_GE(crop.top, 0);
      ASSERT_LE(crop.left + crop.width, width);
      ASSERT_LE(crop.top + crop.height, height);
    }
  }
}

// A square this large fits every area but the largest: first tries are kept, and areas and
// logarithms of ratios are uniform.
TEST(TrainingView, keeps_areas_and_ratios_within_their_bounds_and_uniform) {
  constexpr std::int64_t kSide = 2000;
  Augmentation how;
  how.most_area = 0.7;
  const auto all = views(how, kSide, kSide, 20000);
  const auto area = [&](const TrainingView& view) {
    return static_cast<double>(view.crop.width * view.crop.height) / (kSide * kSide);
  };
  const auto ratio = [&](const TrainingView& view) {
    return static_cast<double>(view.crop.width) / static_cast<double>(view.crop.height);
  };
  for (const TrainingView& view : all) {
    // Sides are rounded: half a pixel of 490 at least, twice.
    ASSERT_NEAR(area(view), 0.39, 0.31 * 1.003);
    ASSERT_GT(ratio(view), 0.75 / 1.003);
    ASSERT_LT(ratio(view), 4.0 / 3 * 1.003);
  }
  // A share of 20,000 is uncertain by 0.0035; four times that.
  for (const double part : {0.1, 0.25, 0.5, 0.75, 0.9}) {
    EXPECT_NEAR(share(all, [&](const auto& view) { return area(view) < 0.08 + part * 0.62; }),
                part, 0.014);
    const double bound = std::exp(std::log(0.75) + part * std::log(16.0 / 9));
    EXPECT_NEAR(share(all, [&](const auto& view) { return ratio(view) < bound; }), part, 0.014);
    const auto place = [&](std::int64_t first, std::int64_t side) {
      return static_cast<double>(first) < part * static_cast<double>(kSide - side + 1);
    };
    EXPECT_NEAR(
        share(all, [&](const auto& view) { return place(view.crop.left, view.crop.width); }),
        part, 0.014);
    EXPECT_NEAR(
        share(all, [&](const auto& view) { return place(view.crop.top, view.crop.height); }),
        part, 0.014);
  }
}

TEST(TrainingView, reaches_the_first_and_the_last_place_of_a_crop) {
  Augmentation how;
  how.least_ratio = how.most_ratio = 1;
  how.least_area = how.most_area = 0.25;
  bool first = false;
  bool last = false;
  for (const TrainingView& view : views(how, 8, 8, 300)) {
    ASSERT_EQ(view.crop.width, 4);
    first = first || view.crop.left == 0;
    last = last || view.crop.left == 4;
  }
  EXPECT_TRUE(first && last);
}

TEST(TrainingView, mirrors_and_chooses_the_filter_as_often_as_it_is_told) {
  Augmentation how;
  auto all = views(how, 64, 64, 20000);
  EXPECT_NEAR(share(all, [](const auto& view) { return view.flip; }), 0.5, 0.014);
  EXPECT_NEAR(share(all, [](const auto& view) { return view.filter == Filter::bicubic; }), 0.5,
              0.014);
  how.flip = 0;
  how.filter = Filter::box;
  all = views(how, 64, 64, 1000);
  EXPECT_EQ(share(all, [](const auto& view) { return view.flip; }), 0);
  EXPECT_EQ(share(all, [](const auto& view) { return view.filter == Filter::box; }), 1);
  how.flip = 1;
  EXPECT_EQ(share(views(how, 64, 64, 1000), [](const auto& view) { return view.flip; }), 1);
}

TEST(TrainingView, is_the_same_in_any_thread_and_order) {
  const auto forward = views({}, 500, 375, 4000);
  std::vector<TrainingView> by_threads(forward.size());
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t turn = 0; turn < 1000; ++turn) {
        const std::size_t sample = 3999 - (turn * 4 + thread);
        by_threads[sample] = training_view({}, 500, 375, {11, 2, sample});
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(by_threads, forward);
}

TEST(TrainingView, differs_between_seeds_epochs_and_samples) {
  const TrainingView one = training_view({}, 500, 375, {11, 2, 30});
  EXPECT_NE(training_view({}, 500, 375, {12, 2, 30}).crop, one.crop);
  EXPECT_NE(training_view({}, 500, 375, {11, 3, 30}).crop, one.crop);
  EXPECT_NE(training_view({}, 500, 375, {11, 2, 31}).crop, one.crop);
}

TEST(TrainingView, gives_pixels_of_its_crop_alone) {
  const Image image = drawn_picture(3, 80, 60);
  const TrainingView view = {{10, 5, 40, 50}, Filter::bilinear, true};
  EXPECT_EQ(pixels_of(image, view, 24).pixels,
            resize(image, {10, 5, 40, 50}, 24, 24, Filter::bilinear).pixels);
}

}  // namespace
}  // namespace halfwatt
