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

/// The parts of two weights, in all places.
struct Pair {
  Register low, high;
  /// `parts` are of an even number of weights in front, and then of these.
  explicit Pair(const std::int16_t* parts) : low(both(parts)), high(both(parts + 2)) {}

 private:
  static Register both(const std::int16_t* part) {
    std::int32_t two;
    __builtin_memcpy(&two, part, sizeof two);
    return everywhere(two);
  }
};

/// The two sums of some outputs.
struct Sums {
  Register low = zero();
  Register high = zero();

  void add_pairs(Register pixels, const Pair& weights) {
    low = sum_of_pairs(low, pixels, weights.low);
    high = sum_of_pairs(high, pixels, weights.high);
  }
  /// Without the bits behind the point, rounded.
  Register whole() const {
    const Register half = everywhere(1 << (kWeightBits - 1));
    return right<kWeightBits>(add(add(left<kLowBits>(high), low), half));
  }
};

constexpr std::int64_t kRegisters = kRowsAtOnce / kLanes;

/// Adds inputs of kRowsAtOnce rows to their sums. A lane holds a row.
struct Inputs {
  // To numbers of 16 bits: red of inputs 0 and 1, green, blue, nothing; then of 2 and 3.
  const Register first_two =
      in_every_lane(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const Register last_two =
      in_every_lane(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));

  /// Four, or two: of 16 bytes, 12 are four inputs.
  template <int count>
  void add_to(Sums* sums,
              const std::uint8_t* in,
              std::int64_t stride,
              const std::int16_t* parts) const {
    const Pair first(parts), last(parts + 4);
    for (std::int64_t at = 0; at < kRegisters; ++at, in += kLanes * stride) {
      const Register pixels = load_rows(in, stride);
      sums[at].add_pairs(shuffle(pixels, first_two), first);
      if constexpr (count == 4) {
        sums[at].add_pairs(shuffle(pixels, last_two), last);
      }
    }
  }
};

// The first four inputs are taken whether there are as many or not (their weights are 0), so
// that nothing is added to nothing; of a photo's windows many have six.
void across(const Weights& weights,
            const Rows<const std::uint8_t>& from,
            const Rows<std::uint8_t>& to) {
  const Weights all = weights;  // a copy, as what is stored might lie in it
  const std::int64_t from_stride = from.stride, to_stride = to.stride;
  const std::uint8_t* const rows = from.first;
  const std::int16_t* parts = all.parts;
  std::uint8_t* out = to.first;
  const Inputs inputs;
  for (std::int64_t place = 0; place < all.places; ++place, out += 3) {
    const Window window = all.windows[place];
    const std::uint8_t* const in = rows + window.first * 3;
    Sums sums[kRegisters];
    inputs.add_to<4>(sums, in, from_stride, parts);
    std::int64_t tap = 4;
    for (; tap + 2 < window.count; tap += 4) {
      inputs.add_to<4>(sums, in + tap * 3, from_stride, parts + tap * 2);
    }
    if (tap < window.count) {
      inputs.add_to<2>(sums, in + tap * 3, from_stride, parts + tap * 2);
    }
    for (std::int64_t at = 0; at < kRegisters; at += 2) {
      const Register words = pack_32(sums[at].whole(), sums[at + 1].whole());
      store_rows<2 * kLanes>(out + at * kLanes * to_stride, to_stride, pack_16(words, words));
    }
    parts += 2 * all.stride;
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
      const Pair pair(weights.parts + tap * 2);
      const Register one = load(rows[tap] + at);
      const Register other = load(rows[tap + 1] + at);
      const Register begin = unpack_low(one, other);
      const Register end = unpack_high(one, other);
      sums[0].add_pairs(unpack_low(begin, zero()), pair);
      sums[1].add_pairs(unpack_high(begin, zero()), pair);
      sums[2].add_pairs(unpack_low(end, zero()), pair);
      sums[3].add_pairs(unpack_high(end, zero()), pair);
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
