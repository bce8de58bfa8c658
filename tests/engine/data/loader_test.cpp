#include "engine/data/loader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include "engine/data/made_images.h"

namespace halfwatt {
namespace {

/// Returns when `done`, or after ten seconds, to fail then.
template <class Done>
void wait_until(Done done) {
  for (int time = 0; time < 1000 && !done(); ++time) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(Loader, gives_every_image_its_view_its_label_and_its_epoch) {
  const MadeImages images(8);
  LoaderOptions options = small_batches();
  options.epochs = 2;
  const auto batches = all_of(*opened(images, options));
  ASSERT_EQ(batches.size(), 4U);
  for (const Batch& batch : batches) {
    EXPECT_EQ(batch.images.shape(), (Shape{4, 3, 1, 1}));
    ASSERT_EQ(batch.valid, 4);
    for (std::size_t at = 0; at < 4; ++at) {
      const auto pixels = batch.images.as<std::uint8_t>().subspan(3 * at, 3);
      EXPECT_EQ(pixels[0], batch.places[at]);
      EXPECT_EQ(pixels[1], batch.at.epoch);
      EXPECT_EQ(pixels[2], 7);
      EXPECT_EQ(batch.labels[at], batch.places[at] % 10);
    }
  }
}

TEST(Loader, asks_the_source_for_what_the_view_looks_at) {
  const MadeImages images(12);
  LoaderOptions options = small_batches();
  options.epochs = 2;
  options.threads = 3;
  std::mutex mutex;
  std::multiset<std::pair<std::int64_t, std::int64_t>> asked;
  options.part = [&](std::int64_t width, std::int64_t height, std::int64_t place,
                     std::int64_t epoch) {
    const std::lock_guard lock(mutex);
    asked.emplace(epoch, place);
    return whole(Resizing{{0, 0, width, height}, width, height});
  };
  std::multiset<std::pair<std::int64_t, std::int64_t>> seen;
  for (const Batch& batch : all_of(*opened(images, options))) {
    for (const std::int64_t place : batch.places) {
      seen.emplace(batch.at.epoch, place);
    }
  }
  EXPECT_EQ(seen.size(), 24U);
  EXPECT_EQ(asked, seen);
}

TEST(Loader, shuffles_every_epoch_by_the_seed_and_takes_each_image_once) {
  const MadeImages images(40);
  LoaderOptions options = small_batches();
  options.epochs = 2;
  auto places = places_of(all_of(*opened(images, options)));
  ASSERT_EQ(places.size(), 80U);
  EXPECT_EQ(std::vector(places.begin(), places.begin() + 40), shuffled(40, 1, 0));
  EXPECT_EQ(std::vector(places.begin() + 40, places.end()), shuffled(40, 1, 1));
}

TEST(Loader, gives_the_same_batches_whatever_the_number_of_threads) {
  MadeImages images(101, {5, 50, 51});
  images.slow_every = 7;
  LoaderOptions options = small_batches();
  options.bad = BadImages::skip;
  options.epochs = 3;
  const auto once = all_of(*opened(images, options));
  for (const int threads : {2, 3, 8}) {
    options.threads = threads;
    options.ahead = threads;
    const auto again = all_of(*opened(images, options));
    EXPECT_TRUE(std::ranges::equal(once, again, equal)) << threads;
  }
}

TEST(Loader, drops_the_last_batch_of_training_that_is_not_full) {
  const MadeImages images(11);
  const auto loader = opened(images, small_batches());
  EXPECT_EQ(loader->batches(), 2);
  EXPECT_EQ(all_of(*loader).size(), 2U);
}

TEST(Loader, evaluates_every_image_once_in_order_and_says_how_many_are_valid) {
  const MadeImages images(6);
  LoaderOptions options = small_batches();
  options.training = false;
  const auto loader = opened(images, options);
  EXPECT_EQ(loader->batches(), 2);
  const auto batches = all_of(*loader);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(places_of(batches), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(batches[1].valid, 2);
  EXPECT_EQ(batches[1].images.shape(), (Shape{4, 3, 1, 1}));
  const auto padding = batches[1].images.as<std::uint8_t>().subspan(6);
  EXPECT_TRUE(std::ranges::all_of(padding, [](std::uint8_t value) { return value == 0; }));
}

TEST(Loader, keeps_to_the_places_it_is_given) {
  const MadeImages images(100);
  LoaderOptions options = small_batches();
  options.places = {10, 20, 30, 40, 50, 60, 70, 80};
  auto places = places_of(all_of(*opened(images, options)));
  std::ranges::sort(places);
  EXPECT_EQ(places, options.places);
}

TEST(Loader, goes_on_where_any_batch_says_that_the_next_one_is) {
  const MadeImages images(11);
  LoaderOptions options = small_batches();
  options.epochs = 3;
  const auto whole = all_of(*opened(images, options));
  ASSERT_EQ(whole.size(), 6U);
  EXPECT_EQ(whole[1].next, (DataPosition{1, 0}));
  EXPECT_EQ(whole[2].next, (DataPosition{1, 4}));
  for (std::size_t done = 0; done < whole.size(); ++done) {
    options.start = whole[done].next;
    const auto rest = all_of(*opened(images, options));
    EXPECT_TRUE(std::ranges::equal(std::span(whole).subspan(done + 1), rest, equal)) << done;
  }
}

TEST(Loader, ends_at_once_where_all_epochs_are_behind) {
  const MadeImages images(8);
  LoaderOptions options = small_batches();
  options.start = {1, 0};
  EXPECT_TRUE(all_of(*opened(images, options)).empty());
}

TEST(Loader, decodes_no_further_ahead_than_it_is_told) {
  const MadeImages images(400);
  LoaderOptions options = small_batches();
  options.threads = 4;
  options.ahead = 2;
  const auto loader = opened(images, options);
  ASSERT_TRUE(loader->next());
  const int allowed = 4 + 2 * 4;
  wait_until([&] { return images.reads >= allowed; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for one that would be too many
  EXPECT_EQ(images.reads, allowed);
}

TEST(Loader, says_how_long_the_caller_waited) {
  const MadeImages images(8);
  LoaderOptions options = small_batches();
  // The first batch is slow, the second one waits for the caller.
  std::atomic<int> views{0};
  const auto loader =
      Loader::open(images, options,
                   [&views](const Image&, std::int64_t, std::int64_t, std::span<std::byte>) {
                     if (views++ < 4) {
                       std::this_thread::sleep_for(std::chrono::milliseconds(50));
                     }
                   });
  ASSERT_TRUE(loader);
  const auto first = (*loader)->next();
  wait_until([&views] { return views == 8; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until the last one is noted
  const auto second = (*loader)->next();
  ASSERT_TRUE(first && *first && second && *second);
  EXPECT_GE((*first)->waited, Seconds(0.15));
  EXPECT_LT((*second)->waited, Seconds(0.1));
}

TEST(Loader, uses_the_memory_of_a_batch_that_is_handed_back) {
  const MadeImages images(400);
  LoaderOptions options = small_batches();
  options.ahead = 1;
  const auto loader = opened(images, options);
  std::set<const std::byte*> seen;
  for (auto batch = loader->next(); batch && *batch; batch = loader->next()) {
    seen.insert((*batch)->images.view().data);
    loader->give_back(std::move(**batch));
  }
  EXPECT_LE(seen.size(), 3U);
}

TEST(Loader, ends_at_any_time_without_being_asked_for_all) {
  MadeImages images(1000);
  images.slow_every = 1;
  LoaderOptions options = small_batches();
  options.threads = 4;
  for (int batches = 0; batches < 4; ++batches) {
    const auto loader = opened(images, options);
    for (int at = 0; at < batches; ++at) {
      EXPECT_TRUE(loader->next());
    }
  }
}

TEST(Loader, throws_what_a_view_threw) {
  const MadeImages images(8);
  const auto loader =
      Loader::open(images, small_batches(),
                   [](const Image&, std::int64_t, std::int64_t, std::span<std::byte>) {
                     throw std::runtime_error("no view");
                   });
  ASSERT_TRUE(loader);
  EXPECT_THROW((void)(*loader)->next(), std::runtime_error);
  EXPECT_THROW((void)(*loader)->next(), std::runtime_error);
}

TEST(Loader, refuses_numbers_out_of_range) {
  const MadeImages images(8);
  const auto refusal = [&images](const LoaderOptions& options) {
    const auto loader = Loader::open(images, options, pixel_view);
    return loader ? "" : loader.error().message;
  };
  LoaderOptions options = small_batches();
  options.threads = 0;
  EXPECT_EQ(refusal(options), "decode threads: 0; needed 1 to 1024");
  options = small_batches();
  options.batch = 0;
  EXPECT_EQ(refusal(options), "batch: 0; needed 1 to 1000000");
  options.batch = 9;
  EXPECT_EQ(refusal(options), "8 images to train on; a batch needs 9");
  options = small_batches();
  options.start = {0, 9};
  EXPECT_EQ(refusal(options), "images of the epoch that are behind: 9; needed 0 to 8");
  options.start = {2, 0};
  EXPECT_EQ(refusal(options), "the data's epoch: 2; needed 0 to 1");
}

std::int64_t resident_bytes() {
  std::int64_t pages = 0;
  std::ifstream file("/proc/self/statm");
  file >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

std::ptrdiff_t threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(Loader, neither_grows_nor_leaves_threads_over_ten_epochs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps memory that was freed";
#endif
  const std::ptrdiff_t threads = threads_now();
  Synthetic synthetic;
  synthetic.images = 256;
  synthetic.side = 128;
  const auto images = open_synthetic(synthetic);
  ASSERT_TRUE(images);
  LoaderOptions options = small_batches();
  options.batch = 16;
  options.image = TensorType{DType::u8, Shape{3, 128, 128}};
  options.threads = 3;
  options.epochs = 10;
  {
    const auto loader = Loader::open(
        **images, options,
        [](const Image& image, std::int64_t, std::int64_t, std::span<std::byte> to) {
          std::ranges::copy(std::as_bytes(std::span(image.pixels)), to.begin());
        });
    ASSERT_TRUE(loader);
    std::int64_t after_two = 0;
    for (auto batch = (*loader)->next(); batch && *batch; batch = (*loader)->next()) {
      if ((*batch)->at == DataPosition{2, 0}) {
        after_two = resident_bytes();
      }
    }
    // An epoch decodes 12 MiB: one image in eight that leaks would show.
    EXPECT_LT(resident_bytes() - after_two, std::int64_t{12} << 20);
  }
  EXPECT_EQ(threads_now(), threads);
}

}  // namespace
}  // namespace halfwatt
