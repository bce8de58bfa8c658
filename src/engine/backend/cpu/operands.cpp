#include "engine/backend/cpu/operands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/tensor/convert.h"

namespace halfwatt::cpu {
namespace {

constexpr Index kGrain = 4096;

// What makes the largest number of an operand the largest of the format (current scaling;
// section 1.9 of the facts on mixed precision).
float scale_to(DType format, const float* from, Index count) {
  float largest = 0;
  for (Index at = 0; at < count; ++at) {
    largest = std::max(largest, std::abs(from[at]));
  }
  const float wanted = static_cast<float>(facts(format).max) / largest;
  return largest > 0 && std::isfinite(largest)
             ? std::min(wanted, std::numeric_limits<float>::max())
             : 1;
}

// Through the codes of the format and back, a cache line of floats after the other.
void round_part(const float* from, float* to, Index count, DType format, float scale) {
  constexpr Index kPiece = 256;
  std::array<std::byte, kPiece * sizeof(float)> codes;
  std::array<float, kPiece> scaled;
  for (Index begin = 0; begin < count; begin += kPiece) {
    const Shape piece{std::min(kPiece, count - begin)};
    for (Index at = 0; at < piece[0]; ++at) {
      scaled[static_cast<std::size_t>(at)] = from[begin + at] * scale;
    }
    const TensorView plain{{DType::f32, piece}, reinterpret_cast<std::byte*>(scaled.data())};
    const TensorView coded{{format, piece}, codes.data()};
    convert(plain, coded);
    convert(coded, plain);
    for (Index at = 0; at < piece[0]; ++at) {
      to[begin + at] = scaled[static_cast<std::size_t>(at)] / scale;
    }
  }
}

}  // namespace

const float* rounded_operand(Call& call, const float* from, Index count, DType format) {
  auto* const to =
      reinterpret_cast<float*>(call.scratch(static_cast<std::size_t>(count) * sizeof(float)));
  if (call.is_dry()) {
    return to;
  }
  const float scale = format == DType::tf32 ? 1 : scale_to(format, from, count);
  call.workers().parallel_for(count, kGrain, [&](Index begin, Index end, int) {
    round_part(from + begin, to + begin, end - begin, format, scale);
  });
  return to;
}

}  // namespace halfwatt::cpu
