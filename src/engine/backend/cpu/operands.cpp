#include "engine/backend/cpu/operands.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/ops/delayed_scaling.h"
#include "engine/tensor/convert.h"

namespace halfwatt::cpu {
namespace {

constexpr Index kGrain = 4096;

// Through the codes of the format and back, a cache line of floats after the other. What is too
// large for an fp8 is its largest number: a scale of the past may not know it yet.
void round_part(const float* from, float* to, Index count, DType format, float scale) {
  constexpr Index kPiece = 256;
  std::array<std::byte, kPiece * sizeof(float)> codes;
  std::array<float, kPiece> scaled;
  const float inverse = 1 / scale;
  const Overflow overflow = format == DType::tf32 ? Overflow::as_format : Overflow::saturate;
  for (Index begin = 0; begin < count; begin += kPiece) {
    const Shape piece{std::min(kPiece, count - begin)};
    for (Index at = 0; at < piece[0]; ++at) {
      scaled[static_cast<std::size_t>(at)] = from[begin + at] * scale;
    }
    const TensorView plain{{DType::f32, piece}, reinterpret_cast<std::byte*>(scaled.data())};
    const TensorView coded{{format, piece}, codes.data()};
    convert(plain, coded, overflow);
    convert(coded, plain);
    for (Index at = 0; at < piece[0]; ++at) {
      to[begin + at] = scaled[static_cast<std::size_t>(at)] * inverse;
    }
  }
}

}  // namespace

float largest_magnitude(const float* from, Index count) {
  float largest = 0;
  for (Index at = 0; at < count; ++at) {
    const float magnitude = std::abs(from[at]);
    largest = magnitude > largest || std::isnan(magnitude) ? magnitude : largest;
  }
  return largest;
}

const float* rounded_operand(Call& call,
                             const float* from,
                             std::size_t at,
                             DType format,
                             std::optional<std::size_t> scale) {
  const Index count = call.input(at).type.shape.elements();
  auto* const to =
      reinterpret_cast<float*>(call.scratch(static_cast<std::size_t>(count) * sizeof(float)));
  if (call.is_dry()) {
    return to;
  }
  float factor = 1;
  if (format != DType::tf32) {
    const bool observes = call.attributes().flag("observe");
    const float amax = observes || !scale ? largest_magnitude(from, count) : 0;
    factor = scale ? call.scalar<float>(*scale) : scale_to(format, amax, 0, 1);
    if (observes) {
      *reinterpret_cast<float*>(call.output(1 + at).data) = amax;
    }
  }
  call.workers().parallel_for(count, kGrain, [&](Index begin, Index end, int) {
    round_part(from + begin, to + begin, end - begin, format, factor);
  });
  return to;
}

}  // namespace halfwatt::cpu
