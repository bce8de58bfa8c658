#include "engine/data/resampler.h"

#include "engine/data/per_isa/registers.h"

// A product of a byte and a weight needs 32 bits, and multiplications of 32 bits are slow or
// few. Those of 16 bits come in pairs with their sum, so a weight is taken in two parts of
// which each has a sum of its own: two instructions for two inputs, no rounding anywhere.
//
// Nothing inline of the standard library is called here: such a function, compiled for AVX-512,
// could be the copy that the linker keeps for the whole program.

namespace halfwatt::HALFWATT_ISA_NAMESPACE {
namespace {

/// The two sums of some outputs.
struct Sums {
  Register low = zero();
  Register high = zero();

  void add_pairs(Register pixels, Register low_weights, Register high_weights) {
    low = sum_of_pairs(low, pixels, low_weights);
    high = sum_of_pairs(high, pixels, high_weights);
  }
  /// Without the bits behind the point, rounded.
  Register whole() const {
    const Register half = everywhere(1 << (kWeightBits - 1));
    return right<kWeightBits>(add(add(left<kLowBits>(high), low), half));
  }
};

/// The weights of two inputs side by side, in all places.
Register pair_of(const std::int16_t* weights) {
  std::int32_t both;
  __builtin_memcpy(&both, weights, sizeof both);
  return everywhere(both);
}

constexpr std::int64_t kRegisters = kRowsAtOnce / kLanes;

// A lane holds a row. Of 16 bytes, 12 are the next four inputs.
void across(const Weights& weights,
            const Rows<const std::uint8_t>& from,
            const Rows<std::uint8_t>& to) {
  // To numbers of 16 bits: red of inputs 0 and 1, green, blue, nothing; then of 2 and 3.
  const Register first_two =
      in_every_lane(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const Register last_two =
      in_every_lane(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  for (std::int64_t place = 0; place < weights.places; ++place) {
    const Window window = weights.windows[place];
    const std::int16_t* low = weights.low + place * weights.stride;
    const std::int16_t* high = weights.high + place * weights.stride;
    const std::uint8_t* in = from.first + window.first * 3;
    Sums sums[kRegisters];
    std::int64_t tap = 0;
    for (; tap + 2 < window.count; tap += kTapsAtOnce, in += 3 * kTapsAtOnce) {
      for (std::int64_t at = 0; at < kRegisters; ++at) {
        const Register pixels = load_rows(in + at * kLanes * from.stride, from.stride);
        sums[at].add_pairs(shuffle(pixels, first_two), pair_of(low + tap), pair_of(high + tap));
        sums[at].add_pairs(shuffle(pixels, last_two), pair_of(low + tap + 2),
                           pair_of(high + tap + 2));
      }
    }
    if (tap < window.count) {  // half a step: of a photo's windows many have six inputs
      for (std::int64_t at = 0; at < kRegisters; ++at) {
        const Register pixels = load_rows(in + at * kLanes * from.stride, from.stride);
        sums[at].add_pairs(shuffle(pixels, first_two), pair_of(low + tap), pair_of(high + tap));
      }
    }
    for (std::int64_t at = 0; at < kRegisters; ++at) {
      const Register words = pack_32(sums[at].whole(), zero());
      store_rows(to.first + at * kLanes * to.stride + place * 3, to.stride,
                 pack_16(words, zero()));
    }
  }
}

void down(const Weights& weights,
          const std::uint8_t* const* rows,
          std::uint8_t* to,
          std::int64_t bytes) {
  const std::int64_t count = weights.windows->count;
  for (std::int64_t at = 0; at < bytes; at += kLanes * 16) {
    Sums sums[4];
    for (std::int64_t tap = 0; tap < count; tap += 2) {
      const Register low = pair_of(weights.low + tap);
      const Register high = pair_of(weights.high + tap);
      const Register one = load(rows[tap] + at);
      const Register other = load(rows[tap + 1] + at);
      const Register begin = unpack_low(one, other);
      const Register end = unpack_high(one, other);
      sums[0].add_pairs(unpack_low(begin, zero()), low, high);
      sums[1].add_pairs(unpack_high(begin, zero()), low, high);
      sums[2].add_pairs(unpack_low(end, zero()), low, high);
      sums[3].add_pairs(unpack_high(end, zero()), low, high);
    }
    store(to + at, pack_16(pack_32(sums[0].whole(), sums[1].whole()),
                           pack_32(sums[2].whole(), sums[3].whole())));
  }
}

#define HALFWATT_TEXT_OF(name) #name
#define HALFWATT_TEXT(name) HALFWATT_TEXT_OF(name)

}  // namespace

extern const Resampler kResampler;
const Resampler kResampler = {HALFWATT_TEXT(HALFWATT_ISA_NAMESPACE), across, down};

}  // namespace halfwatt::HALFWATT_ISA_NAMESPACE
