#pragma once

#include "engine/backend/cuda/kernels/elements.h"
#include "engine/backend/cuda/kernels/types.cuh"
#include "engine/tensor/keyed_random.h"

namespace halfwatt::cuda {

/// KeyedRandom on the device, where the key lies in memory.
class DeviceRandom {
 public:
  __device__ explicit DeviceRandom(const RandomSource& from)
      : attempt_(static_cast<std::uint32_t>(from.key[1])),
        first_sample_(static_cast<std::uint64_t>(from.key[2])) {
    const std::uint64_t key = mixed(static_cast<std::uint64_t>(from.key[0])) ^ from.path;
    key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  }

  __device__ std::uint64_t first_sample() const { return first_sample_; }
  __device__ std::uint32_t bits(std::uint64_t sample, std::uint64_t element) const {
    const auto words =
        philox({static_cast<std::uint32_t>(element / 4), attempt_,
                static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)},
               key_);
    return words[element % 4];
  }
  __device__ bool keep(std::uint64_t sample, std::uint64_t element, float probability) const {
    return KeyedRandom::to_uniform(bits(sample, element)) < probability;
  }

 private:
  // The first number of Rng(seed): SplitMix64.
  __device__ static std::uint64_t mixed(std::uint64_t seed) {
    std::uint64_t z = seed + 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  PhiloxKey key_;
  std::uint32_t attempt_;
  std::uint64_t first_sample_;
};

}  // namespace halfwatt::cuda
