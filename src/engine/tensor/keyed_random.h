#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace halfwatt {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Four independent random words, a pure function of counter and key: Philox 4x32-10 (Salmon et
/// al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
constexpr std::array<std::uint32_t, 4> philox(PhiloxCounter counter, PhiloxKey key) {
  // Multipliers and the steps of the key (golden ratio, sqrt(3) - 1): table 2 and section 4.3.
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// FNV-1a, 64 bits, of the bytes of `name`.
constexpr std::uint64_t fnv1a(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  return hash;
}

/// The random numbers of one op in one attempt at a step. Each is a function of (seed, path of
/// the op, attempt, global index of the sample, element within the sample) and of nothing else:
/// the same in whatever order, batch, thread or device it is asked for, and when asked again.
///
///   key,     64 bits: SplitMix64's mix of the seed, xor fnv1a of the path. Of one seed, ops
///                     have different keys unless their hashes are equal, 2^-64 for a pair.
///   counter,  word 0: element / 4; element % 4 picks one of the block's four words
///             word 1: attempt
///        words 2, 3: sample, low word first
///
/// Limits: attempt < 2^32, element < 2^34; seed and sample have all 64 bits. An op that draws
/// twice for an element needs two paths ("blocks.0.drop", "blocks.0.drop/2").
class KeyedRandom {
 public:
  /// An attempt of 2^32 or more is a broken invariant.
  KeyedRandom(std::uint64_t seed, std::string_view path, std::uint64_t attempt);

  /// The words of elements 4 * `block` to 4 * `block` + 3.
  std::array<std::uint32_t, 4> block(std::uint64_t sample, std::uint32_t block) const {
    return philox({block, attempt_, static_cast<std::uint32_t>(sample),
                   static_cast<std::uint32_t>(sample >> 32)},
                  key_);
  }
  /// 32 random bits.
  std::uint32_t bits(std::uint64_t sample, std::uint64_t element) const {
    return block(sample, static_cast<std::uint32_t>(element / 4))[element % 4];
  }
  /// In [0, 1), a multiple of 2^-24.
  float uniform(std::uint64_t sample, std::uint64_t element) const {
    return to_uniform(bits(sample, element));
  }
  /// True with `probability`: whether `uniform` is below it. Never at 0, always at 1.
  bool keep(std::uint64_t sample, std::uint64_t element, float probability) const {
    return uniform(sample, element) < probability;
  }

  /// `bits` of the elements from `first` on, a block at a time.
  void fill_bits(std::uint64_t sample, std::uint64_t first, std::span<std::uint32_t> to) const;
  /// `uniform` of the elements from `first` on.
  void fill_uniform(std::uint64_t sample, std::uint64_t first, std::span<float> to) const;

  /// What `uniform` makes of random bits: the upper 24, as many as a float holds.
  static constexpr float to_uniform(std::uint32_t bits) {
    return static_cast<float>(bits >> 8) * 0x1p-24F;
  }

 private:
  PhiloxKey key_;
  std::uint32_t attempt_;
};

}  // namespace halfwatt
