#include "engine/data/ram_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/check.h"

namespace halfwatt {
namespace {

// Enough to know the mean size of photos within a few percent, decoded in a second.
constexpr std::int64_t kSample = 64;
// What each image costs besides its pixels: its place in the list, and the allocator's part.
constexpr std::int64_t kEach = 64;

std::int64_t bytes_of(const Image& image) {
  return static_cast<std::int64_t>(image.pixels.size()) + kEach;
}

class RamCache final : public Source {
 public:
  RamCache(const Source& source, CacheRoom& room)
      : source_(&source), room_(&room), kept_(static_cast<std::size_t>(source.size())) {}

  std::int64_t size() const override { return source_->size(); }
  const ClassMap& classes() const override { return source_->classes(); }
  std::int64_t label(std::int64_t place) const override { return source_->label(place); }
  std::string name(std::int64_t place) const override { return source_->name(place); }
  std::vector<std::string> remarks() const override { return source_->remarks(); }
  std::int64_t turned() const override { return source_->turned(); }

  Result<Image> read(std::int64_t place) const override {
    HALFWATT_CHECK(place >= 0 && place < size(), "a place of this source");
    if (const Image* kept = find(place)) {
      return *kept;  // copied without the lock, as nothing that is kept ever goes
    }
    auto image = source_->read(place);
    if (image) {
      keep(place, *image);
    }
    return image;
  }
  Result<Image> read_part(std::int64_t place, const PartOf& part) const override {
    HALFWATT_CHECK(place >= 0 && place < size(), "a place of this source");
    const Image* const kept = part ? find(place) : nullptr;
    return kept != nullptr ? part_of(*kept, part) : Source::read_part(place, part);
  }

 private:
  const Image* find(std::int64_t place) const {
    const std::lock_guard lock(mutex_);
    return kept_[static_cast<std::size_t>(place)].get();
  }

  void keep(std::int64_t place, const Image& image) const {
    const std::lock_guard lock(mutex_);
    auto& kept = kept_[static_cast<std::size_t>(place)];
    if (!kept && room_->take(bytes_of(image))) {
      kept = std::make_unique<const Image>(image);
    }
  }

  const Source* source_;
  CacheRoom* room_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const Image>> kept_;
};

// What all images will take, from up to kSample of them evenly spread; those that cannot be
// read take nothing.
std::int64_t reckoned_bytes(const Source& source) {
  const std::int64_t count = std::min(source.size(), kSample);
  std::int64_t bytes = 0;
  for (std::int64_t at = 0; at < count; ++at) {
    const auto image = source.read(at * source.size() / count);
    bytes += image ? bytes_of(*image) : kEach;
  }
  return count == 0 ? 0
                    : static_cast<std::int64_t>(static_cast<double>(bytes) /
                                                static_cast<double>(count) *
                                                static_cast<double>(source.size()));
}

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / 0x1p30; }

}  // namespace

std::int64_t CacheRoom::unclaimed() const {
  const std::lock_guard lock(mutex_);
  return unclaimed_;
}

bool CacheRoom::claim(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool fits = bytes <= unclaimed_;
  unclaimed_ -= fits ? bytes : 0;
  return fits;
}

bool CacheRoom::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool fits = bytes <= free_;
  free_ -= fits ? bytes : 0;
  return fits;
}

Result<std::unique_ptr<Source>> cached_in_ram(const Source& source, CacheRoom& room) {
  const std::int64_t bytes = reckoned_bytes(source);
  if (!room.claim(bytes)) {
    return bad_input(
        fmt::format("{} decoded images need about {:.3g} GiB of RAM, and there is room for "
                    "{:.3g} GiB: leave the cache off",
                    source.size(), gib(bytes), gib(room.unclaimed())));
  }
  return std::unique_ptr<Source>(std::make_unique<RamCache>(source, room));
}

}  // namespace halfwatt
