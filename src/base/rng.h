#pragma once

#include <cstdint>

namespace halfwatt {

/// A small seeded generator (SplitMix64) whose sequence is the same on every machine and
/// library, unlike std::normal_distribution's.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  /// In [0, 1).
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Standard normal, by Box and Muller.
  double normal();

 private:
  std::uint64_t state_;
};

}  // namespace halfwatt
