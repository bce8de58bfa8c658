#pragma once

#include <cstdint>

namespace halfwatt {

// How the sums of a resize are computed: once in plain C++, and once for each set of
// instructions in per_isa/. All of it is arithmetic of whole numbers: all give the same bits.

/// Bits of a weight behind the point; Pillow's PRECISION_BITS.
inline constexpr int kWeightBits = 22;
/// Bits of the lower part of a weight in two parts.
inline constexpr int kLowBits = 11;

/// Weights of a window may be read up to a multiple of this many; those beyond it are 0.
inline constexpr std::int64_t kTapsAtOnce = 4;
/// Rows that `across` takes at once.
inline constexpr std::int64_t kRowsAtOnce = 8;
/// Bytes that may be read behind the last pixel of a row that `across` takes.
inline constexpr std::int64_t kReadBehind = 16;
/// `down` reads and writes a multiple of this many bytes; so rows are that long, and one byte
/// at least is free behind their last pixel, which `across` may write.
inline constexpr std::int64_t kRowUnit = 64;

/// The inputs that one output is made of.
struct Window {
  std::int64_t first = 0, count = 0;
};

/// The windows of outputs side by side, and the weights of each; a view.
struct Weights {
  const Window* windows;
  std::int64_t places;
  std::int64_t stride;        ///< weights from one place to the next
  const std::int32_t* whole;  ///< [places, stride]: 2^22 is 1
  /// What instructions on 16 bits need, [places, stride / 2, 2, 2]: of every two weights the
  /// low parts, then the high ones; whole = high * 2^11 + low, low from 0 to 2^11 - 1.
  const std::int16_t* parts;
};

/// Rows of bytes.
template <class Byte>
struct Rows {
  Byte* first;
  std::int64_t stride;
};

struct Resampler {
  const char* name;
  /// Makes kRowsAtOnce rows of RGB narrower or wider.
  void (*across)(const Weights& weights,
                 const Rows<const std::uint8_t>& from,
                 const Rows<std::uint8_t>& to);
  /// Makes one row of `bytes` of the rows of the first window in `weights`. The pointer behind
  /// the last of `rows` is of a row too: it is read where their number is odd, and weighs 0.
  void (*down)(const Weights& weights,
               const std::uint8_t* const* rows,
               std::uint8_t* to,
               std::int64_t bytes);
};

/// Those that this program was built with and this processor can run: the plain one first, the
/// fastest last, a null pointer behind it.
const Resampler* const* resamplers();
/// The last of them.
const Resampler& fastest_resampler();

}  // namespace halfwatt
