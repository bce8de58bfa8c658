#include <gtest/gtest.h>

#include "engine/data/made_images.h"

namespace halfwatt {
namespace {

std::vector<std::int64_t> told_by(const std::vector<Batch>& batches) {
  std::vector<std::int64_t> places;
  for (const Batch& batch : batches) {
    for (const BadImage& bad : batch.bad) {
      places.push_back(bad.place);
    }
  }
  return places;
}

LoaderOptions skipping() {
  LoaderOptions options = small_batches();
  options.bad = BadImages::skip;
  return options;
}

TEST(BadImages, stop_the_batch_that_needs_them_with_their_one_line) {
  const auto order = shuffled(12, 1, 0);
  // The sixth and the seventh of the order: the earlier one is told, whichever is read first.
  const MadeImages images(12, {order[5], order[6]});
  for (const int threads : {1, 4}) {
    LoaderOptions options = small_batches();
    options.threads = threads;
    const auto loader = opened(images, options);
    EXPECT_TRUE(loader->next());
    for (int time = 0; time < 2; ++time) {
      const auto second = loader->next();
      ASSERT_FALSE(second);
      EXPECT_EQ(second.error().kind, ErrorKind::bad_input);
      EXPECT_EQ(second.error().message,
                images.name(order[5]) + ": is broken; needed a whole one");
    }
  }
}

TEST(BadImages, are_replaced_in_training_by_the_next_good_one_of_the_order) {
  const auto order = shuffled(12, 1, 0);
  const MadeImages images(12, {order[1], order[2], order[11]});
  auto expected = order;
  expected[1] = expected[2] = order[3];
  expected[11] = order[0];  // behind the last one comes the first one
  EXPECT_EQ(places_of(all_of(*opened(images, skipping()))), expected);
}

TEST(BadImages, are_told_once_in_the_order_of_the_batches_and_counted) {
  MadeImages images(60, {3, 4, 5, 40});
  images.slow_every = 4;
  LoaderOptions options = skipping();
  options.epochs = 3;
  const auto first = opened(images, options);
  const auto told = told_by(all_of(*first));
  EXPECT_EQ(told.size(), 4U);
  EXPECT_EQ(first->bad_images(), 4);
  options.threads = 6;
  options.ahead = 6;
  EXPECT_EQ(told_by(all_of(*opened(images, options))), told);
}

TEST(BadImages, say_why) {
  const MadeImages images(4, {2});
  const auto batches = all_of(*opened(images, skipping()));
  ASSERT_EQ(batches.size(), 1U);
  ASSERT_EQ(batches[0].bad.size(), 1U);
  EXPECT_EQ(batches[0].bad[0].message, "made 2: is broken; needed a whole one");
}

TEST(BadImages, are_not_read_again_in_later_epochs) {
  const MadeImages images(4, {2});
  LoaderOptions options = skipping();
  options.epochs = 5;
  EXPECT_EQ(all_of(*opened(images, options)).size(), 5U);
  EXPECT_EQ(images.reads, 5 * 4 + 1);
}

TEST(BadImages, are_left_out_of_an_evaluation_so_that_every_good_one_counts_once) {
  const MadeImages images(10, {0, 2, 4, 5, 6, 7});
  LoaderOptions options = skipping();
  options.training = false;
  const auto batches = all_of(*opened(images, options));
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[0].valid, 2);
  EXPECT_EQ(batches[1].valid, 0);
  EXPECT_EQ(batches[2].valid, 2);
  EXPECT_EQ(places_of(batches), (std::vector<std::int64_t>{1, 3, 8, 9}));
  const auto first = batches[0].images.as<std::uint8_t>();
  EXPECT_EQ(first[0], 1);
  EXPECT_EQ(first[3], 3);
  EXPECT_TRUE(std::ranges::all_of(first.subspan(6), [](auto value) { return value == 0; }));
  EXPECT_EQ(told_by(batches), (std::vector<std::int64_t>{0, 2, 4, 5, 6, 7}));
}

TEST(BadImages, end_a_training_that_has_no_other) {
  const MadeImages images(4, {0, 1, 2, 3});
  const auto loader = opened(images, skipping());
  const auto batch = loader->next();
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message, "none of 4 images can be read; the first: made " +
                                       std::to_string(shuffled(4, 1, 0)[0]) +
                                       ": is broken; needed a whole one");
}

}  // namespace
}  // namespace halfwatt
