#include "engine/backend/backend.h"

#include <deque>

#include "base/check.h"

namespace halfwatt {
namespace {

// For devices that are done as soon as they are asked.
class FeedAtOnce final : public Feed {
 public:
  FeedAtOnce(Backend& backend, std::byte* to, std::size_t bytes)
      : backend_(&backend), to_(to), value_(bytes), beside_(backend.allocate(aligned(bytes))) {}
  std::span<std::byte> next() override { return value_; }
  void send() override { backend_->upload(to_, value_); }

 private:
  Backend* backend_;
  std::byte* to_;
  std::vector<std::byte> value_;
  Buffer beside_;  ///< what a device that feeds ahead would hold
};

class SnapshotsAtOnce final : public Snapshots {
 public:
  SnapshotsAtOnce(Backend& backend, const std::byte* from, std::size_t bytes)
      : backend_(&backend), from_(from), bytes_(bytes) {}
  void take() override {
    HALFWATT_CHECK(taken_.size() < kMost, "room for one more");
    backend_->download(taken_.emplace_back(bytes_), from_);
  }
  bool is_there() override { return true; }
  std::span<const std::byte> oldest() override { return taken_.front(); }
  void drop_oldest() override { taken_.pop_front(); }

 private:
  Backend* backend_;
  const std::byte* from_;
  std::size_t bytes_;
  std::deque<std::vector<std::byte>> taken_;
};

}  // namespace

std::unique_ptr<Feed> Backend::feed(std::byte* to, std::size_t bytes) {
  return std::make_unique<FeedAtOnce>(*this, to, bytes);
}

std::unique_ptr<Snapshots> Backend::snapshots(const std::byte* from, std::size_t bytes) {
  return std::make_unique<SnapshotsAtOnce>(*this, from, bytes);
}

std::byte* address(const Place& place, const Bound& bound) {
  switch (place.space) {
    case Place::Space::arena:
      return bound.arena + place.offset;
    case Place::Space::state:
      return bound.states[static_cast<std::size_t>(place.index)];
    case Place::Space::input:
      break;
  }
  return bound.inputs[static_cast<std::size_t>(place.index)];
}

}  // namespace halfwatt
