#include "engine/data/ram_cache.h"

#include <gtest/gtest.h>

#include "engine/data/made_images.h"

namespace halfwatt {
namespace {

TEST(RamCache, decodes_an_image_once) {
  const MadeImages images(3);
  CacheRoom room(1'000'000);
  const auto cache = cached_in_ram(images, room);
  ASSERT_TRUE(cache) << cache.error().message;
  images.reads = 0;
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ((*cache)->read(2)->pixels, (std::vector<std::uint8_t>{2, 2, 2}));
  }
  EXPECT_EQ(images.reads, 1);
}

TEST(RamCache, gives_a_part_of_an_image_that_it_keeps) {
  const MadeImages images(3);
  CacheRoom room(1'000'000);
  const auto cache = cached_in_ram(images, room);
  ASSERT_TRUE(cache) << cache.error().message;
  images.reads = 0;
  const PartOf twice = [](std::int64_t width, std::int64_t height) {
    return whole(Resizing{{0, 0, width, height}, 2 * width, height});
  };
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ((*cache)->read_part(2, twice)->pixels,
              (std::vector<std::uint8_t>{2, 2, 2, 2, 2, 2}));
  }
  EXPECT_EQ((*cache)->read_part(2, {})->pixels, (std::vector<std::uint8_t>{2, 2, 2}));
  EXPECT_EQ(images.reads, 1);
}

TEST(RamCache, is_the_same_source_otherwise) {
  const MadeImages images(30);
  CacheRoom room(1'000'000);
  const auto cache = cached_in_ram(images, room);
  ASSERT_TRUE(cache);
  EXPECT_EQ((*cache)->size(), 30);
  EXPECT_EQ((*cache)->label(13), 3);
  EXPECT_EQ((*cache)->name(13), "made 13");
  EXPECT_EQ((*cache)->classes().compare(images.classes()), std::nullopt);
}

TEST(RamCache, tries_an_image_that_cannot_be_read_again) {
  const MadeImages images(3, {1});
  CacheRoom room(1'000'000);
  const auto cache = cached_in_ram(images, room);
  ASSERT_TRUE(cache);
  images.reads = 0;
  EXPECT_FALSE((*cache)->read(1));
  EXPECT_FALSE((*cache)->read(1));
  EXPECT_EQ(images.reads, 2);
}

TEST(RamCache, is_refused_with_a_figure_where_the_images_do_not_fit) {
  Synthetic synthetic;
  synthetic.images = 1'000'000;
  synthetic.side = 8;
  const auto images = open_synthetic(synthetic);
  ASSERT_TRUE(images);
  CacheRoom room(1 << 27);
  const auto cache = cached_in_ram(**images, room);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().message,
            "1000000 decoded images need about 0.238 GiB of RAM, and there is room for 0.125 "
            "GiB: leave the cache off");
}

// Each image takes 67 bytes, and 64 of them are reckoned as they are.
TEST(RamCache, is_refused_where_another_cache_has_claimed_the_room_before_it_took_any) {
  const MadeImages images(64);
  CacheRoom room(100 * 67);
  const auto first = cached_in_ram(images, room);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(room.unclaimed(), 36 * 67);
  EXPECT_FALSE(cached_in_ram(images, room));
  const MadeImages fewer(36);
  EXPECT_TRUE(cached_in_ram(fewer, room));
}

/// Larger images than those that a sample of 64 sees.
class LargeBetween final : public Source {
 public:
  std::int64_t size() const override { return 128; }
  const ClassMap& classes() const override { return classes_; }
  std::int64_t label(std::int64_t) const override { return 0; }
  std::string name(std::int64_t) const override { return "image"; }
  Result<Image> read(std::int64_t place) const override {
    ++reads;
    const std::int64_t side = place % 2 == 0 ? 1 : 100;
    return Image{side, side,
                 std::vector<std::uint8_t>(static_cast<std::size_t>(3 * side * side))};
  }
  mutable int reads = 0;

 private:
  ClassMap classes_ = ClassMap::numbered(1);
};

TEST(RamCache, never_takes_more_than_its_room) {
  const LargeBetween images;
  CacheRoom room(100'000);
  const auto cache = cached_in_ram(images, room);
  ASSERT_TRUE(cache) << cache.error().message;
  for (int time = 0; time < 2; ++time) {
    images.reads = 0;
    for (std::int64_t place = 0; place < images.size(); ++place) {
      EXPECT_TRUE((*cache)->read(place));
    }
  }
  // Three large ones and the 64 small ones that came before there was no room for more.
  EXPECT_GE(images.reads, 128 - 64 - 3);
  EXPECT_LE(images.reads, 64);
}

TEST(RamCache, never_takes_more_than_its_room_beside_another) {
  const LargeBetween large;
  const MadeImages small(64);
  CacheRoom room(96'000);
  const auto first = cached_in_ram(large, room);
  const auto second = cached_in_ram(small, room);
  ASSERT_TRUE(first && second);
  for (std::int64_t place = 0; place < large.size(); ++place) {
    EXPECT_TRUE((*first)->read(place));
  }
  small.reads = 0;
  for (int time = 0; time < 2; ++time) {
    for (std::int64_t place = 0; place < small.size(); ++place) {
      EXPECT_TRUE((*second)->read(place));
    }
  }
  // Three of 30,064 bytes and their small neighbours leave no room for 64 more of 67.
  EXPECT_GT(small.reads, 64);
}

}  // namespace
}  // namespace halfwatt
