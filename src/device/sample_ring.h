#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "device/signal.h"

namespace halfwatt {

/// A sample and when its reading ended, on CLOCK_MONOTONIC.
struct StampedSample {
  Seconds at;
  Sample sample;
};

/// The last samples of one device, in memory that never grows.
class SampleRing {
 public:
  explicit SampleRing(std::size_t capacity) : slots_(capacity) {
    HALFWATT_CHECK(capacity > 0, "a ring without room");
  }

  void push(const StampedSample& sample) {
    slots_[next_] = sample;
    next_ = (next_ + 1) % slots_.size();
    size_ = std::min(size_ + 1, slots_.size());
  }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return slots_.size(); }
  /// The oldest for 0, the newest for size() - 1.
  const StampedSample& operator[](std::size_t i) const {
    return slots_[(next_ + slots_.size() - size_ + i) % slots_.size()];
  }

 private:
  std::vector<StampedSample> slots_;
  std::size_t next_ = 0;
  std::size_t size_ = 0;
};

}  // namespace halfwatt
