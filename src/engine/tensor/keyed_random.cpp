#include "engine/tensor/keyed_random.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/rng.h"

namespace halfwatt {
namespace {

/// Writes `made_of` every word of the elements from `first` on.
template <class T, class Make>
void fill(const KeyedRandom& random,
          std::uint64_t sample,
          std::uint64_t first,
          std::span<T> to,
          Make made_of) {
  std::size_t at = 0;
  while (at < to.size()) {
    const std::uint64_t element = first + at;
    const auto words = random.block(sample, static_cast<std::uint32_t>(element / 4));
    const std::size_t end = std::min(to.size(), at + 4 - element % 4);
    for (std::size_t word = element % 4; at < end; ++at, ++word) {
      to[at] = made_of(words[word]);
    }
  }
}

}  // namespace

KeyedRandom::KeyedRandom(std::uint64_t seed, std::string_view path, std::uint64_t attempt)
    : attempt_(static_cast<std::uint32_t>(attempt)) {
  HALFWATT_CHECK(attempt >> 32 == 0,
                 "more attempts than random numbers have been set apart for");
  const std::uint64_t key = Rng(seed).next() ^ fnv1a(path);
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

void KeyedRandom::fill_bits(std::uint64_t sample,
                            std::uint64_t first,
                            std::span<std::uint32_t> to) const {
  fill(*this, sample, first, to, [](std::uint32_t word) { return word; });
}

void KeyedRandom::fill_uniform(std::uint64_t sample,
                               std::uint64_t first,
                               std::span<float> to) const {
  fill(*this, sample, first, to, to_uniform);
}

}  // namespace halfwatt
