#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "engine/data/loader.h"

namespace halfwatt {

/// Images of one pixel that is as grey as their place; some cannot be read. Places that are a
/// multiple of `slow_every` take a while, so that threads finish in another order.
class MadeImages final : public Source {
 public:
  explicit MadeImages(std::int64_t count, std::set<std::int64_t> bad = {})
      : count_(count), bad_(std::move(bad)), classes_(ClassMap::numbered(10)) {}

  std::int64_t size() const override { return count_; }
  const ClassMap& classes() const override { return classes_; }
  std::int64_t label(std::int64_t place) const override { return place % 10; }
  std::string name(std::int64_t place) const override {
    return "made " + std::to_string(place);
  }
  Result<Image> read(std::int64_t place) const override {
    ++reads;
    if (slow_every > 0 && place % slow_every == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    if (bad_.count(place) != 0) {
      return bad_input(name(place) + ": is broken; needed a whole one");
    }
    const auto grey = static_cast<std::uint8_t>(place);
    return Image{1, 1, {grey, grey, grey}};
  }
  Result<Image> read_part(std::int64_t place, const PartOf& part) const override {
    if (part) {
      EXPECT_EQ(part(1, 1).how.from, (Box{0, 0, 1, 1}));
    }
    return read(place);
  }

  std::int64_t slow_every = 0;
  mutable std::atomic<int> reads{0};

 private:
  std::int64_t count_;
  std::set<std::int64_t> bad_;
  ClassMap classes_;
};

/// A view that keeps the pixel, and the epoch beside it: [3, 1, 1] of bytes is what one writes.
inline void pixel_view(const Image& image,
                       std::int64_t,
                       std::int64_t epoch,
                       std::span<std::byte> to) {
  to[0] = static_cast<std::byte>(image.pixels[0]);
  to[1] = static_cast<std::byte>(epoch);
  to[2] = std::byte{7};
}

/// Batches of 4, as pixel_view writes them.
inline LoaderOptions small_batches() {
  LoaderOptions options;
  options.batch = 4;
  options.image = TensorType{DType::u8, Shape{3, 1, 1}};
  options.seed = 1;
  return options;
}

inline std::unique_ptr<Loader> opened(const Source& source, const LoaderOptions& options) {
  auto loader = Loader::open(source, options, pixel_view);
  EXPECT_TRUE(loader) << loader.error().message;
  return std::move(*loader);
}

/// Every batch until the end.
inline std::vector<Batch> all_of(Loader& loader) {
  std::vector<Batch> batches;
  while (true) {
    auto batch = loader.next();
    EXPECT_TRUE(batch) << batch.error().message;
    if (!batch || !*batch) {
      return batches;
    }
    batches.push_back(std::move(**batch));
  }
}

inline std::vector<std::int64_t> places_of(const std::vector<Batch>& batches) {
  std::vector<std::int64_t> places;
  for (const Batch& batch : batches) {
    places.insert(places.end(), batch.places.begin(), batch.places.end());
  }
  return places;
}

inline bool equal(const Batch& one, const Batch& other) {
  return one.places == other.places && one.labels == other.labels && one.valid == other.valid &&
         one.at == other.at && one.next == other.next &&
         std::ranges::equal(one.images.view().bytes(), other.images.view().bytes());
}

}  // namespace halfwatt
