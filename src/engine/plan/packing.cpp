#include <algorithm>
#include <numeric>

#include "engine/plan/memory.h"

namespace halfwatt {

// Greedy by size (Pisarchyk and Lee 2020): near the lower bound on networks, and each buffer is
// placed once.
Packing pack(const std::vector<Lifetime>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return buffers[one].bytes > buffers[other].bytes;
  });
  Packing packing{std::vector<std::size_t>(buffers.size()), 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t at : order) {
    const Lifetime& buffer = buffers[at];
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      const bool together =
          buffers[other].first <= buffer.last && buffer.first <= buffers[other].last;
      if (together && packing.offsets[other] < offset + aligned(buffer.bytes)) {
        offset = std::max(offset, packing.offsets[other] + aligned(buffers[other].bytes));
      }
    }
    packing.offsets[at] = offset;
    packing.size = std::max(packing.size, offset + aligned(buffer.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), at,
                                   [&](std::size_t one, std::size_t other) {
                                     return packing.offsets[one] < packing.offsets[other];
                                   }),
                  at);
  }
  return packing;
}

}  // namespace halfwatt
