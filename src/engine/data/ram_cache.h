#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/data/source.h"

namespace halfwatt {

/// Memory that several caches share. Threads may use it at once.
class CacheRoom {
 public:
  explicit CacheRoom(std::int64_t bytes) : unclaimed_(bytes), free_(bytes) {}

  /// What no cache has claimed yet.
  std::int64_t unclaimed() const;
  /// Sets aside what a cache is reckoned to take in the end; false if that is not there.
  bool claim(std::int64_t bytes);
  /// Takes what an image takes; false if it is not there, whatever was claimed.
  bool take(std::int64_t bytes);

 private:
  mutable std::mutex mutex_;
  std::int64_t unclaimed_;
  std::int64_t free_;
};

/// The images of `source`, each decoded when it is first read and then kept; images that cannot
/// be read are tried again. `room` is available_memory() less what the network needs; source
/// and room outlive the cache. All caches of a room never take more than it has: where images
/// turn out larger than was reckoned from some of them, the last ones are decoded anew each
/// time. Errors (bad_input): the images need more than the other caches of the room leave, by
/// that reckoning.
Result<std::unique_ptr<Source>> cached_in_ram(const Source& source, CacheRoom& room);

}  // namespace halfwatt
