#include "engine/data/resampler.h"

#include <algorithm>
#include <array>

namespace halfwatt {

// Each is per_isa/resampler.cpp, compiled for these instructions.
#if HALFWATT_RESAMPLERS_X86
namespace avx2 {
extern const Resampler kResampler;
}
namespace avx512_vnni {
extern const Resampler kResampler;
}
#endif

namespace {

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

std::uint8_t byte_of(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void across(const Weights& weights,
            const Rows<const std::uint8_t>& from,
            const Rows<std::uint8_t>& to) {
  for (std::int64_t row = 0; row < kRowsAtOnce; ++row) {
    std::uint8_t* out = to.first + row * to.stride;
    for (std::int64_t place = 0; place < weights.places; ++place, out += 3) {
      const Window window = weights.windows[place];
      const std::uint8_t* in = from.first + row * from.stride + window.first * 3;
      const std::int32_t* weight = weights.whole + place * weights.stride;
      std::array sums = {kHalf, kHalf, kHalf};
      for (std::int64_t tap = 0; tap < window.count; ++tap, in += 3) {
        sums[0] += in[0] * weight[tap];
        sums[1] += in[1] * weight[tap];
        sums[2] += in[2] * weight[tap];
      }
      std::transform(sums.begin(), sums.end(), out, byte_of);
    }
  }
}

void down(const Weights& weights,
          const std::uint8_t* const* rows,
          std::uint8_t* to,
          std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += kRowUnit) {
    std::array<std::int32_t, kRowUnit> sums;
    sums.fill(kHalf);
    for (std::int64_t tap = 0; tap < weights.windows->count; ++tap) {
      const std::uint8_t* row = rows[tap] + at;
      const std::int32_t weight = weights.whole[tap];
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += row[i] * weight;
      }
    }
    std::transform(sums.begin(), sums.end(), to + at, byte_of);
  }
}

constexpr Resampler kPortable = {"portable", across, down};

std::array<const Resampler*, 4> of_this_machine() {
  std::array<const Resampler*, 4> found = {&kPortable};
#if HALFWATT_RESAMPLERS_X86
  // These ask the processor and the operating system, which must save the wide registers.
  if (__builtin_cpu_supports("avx2")) {
    found[1] = &avx2::kResampler;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vnni")) {
      found[2] = &avx512_vnni::kResampler;
    }
  }
#endif
  return found;
}

}  // namespace

const Resampler* const* resamplers() {
  static const auto all = of_this_machine();
  return all.data();
}

const Resampler& fastest_resampler() {
  const Resampler* const* last = resamplers();
  while (last[1] != nullptr) {
    ++last;
  }
  return **last;
}

}  // namespace halfwatt
