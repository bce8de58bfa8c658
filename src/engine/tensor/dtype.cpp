#include "engine/tensor/dtype.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace halfwatt {
namespace {

// Section 1.5 of the facts on mixed precision; in the order of the enumeration.
constexpr std::array<DTypeFacts, kDTypes> kFacts = {{
    {DType::f64, "f64", 8, 52, 11, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074},
    {DType::f32, "f32", 4, 23, 8, 0x1.fffffep127, 0x1p-126, 0x1p-149},
    {DType::tf32, "tf32", 4, 10, 8, 0x1.ffcp127, 0x1p-126, 0x1p-136},
    {DType::f16, "f16", 2, 10, 5, 65504, 0x1p-14, 0x1p-24},
    {DType::bf16, "bf16", 2, 7, 8, 0x1.fep127, 0x1p-126, 0x1p-133},
    {DType::e4m3, "e4m3", 1, 3, 4, 448, 0x1p-6, 0x1p-9},
    {DType::e5m2, "e5m2", 1, 2, 5, 57344, 0x1p-14, 0x1p-16},
    {DType::i64, "i64", 8},
    {DType::i32, "i32", 4},
    {DType::i16, "i16", 2},
    {DType::i8, "i8", 1},
    {DType::u64, "u64", 8},
    {DType::u32, "u32", 4},
    {DType::u16, "u16", 2},
    {DType::u8, "u8", 1},
    {DType::boolean, "bool", 1},
}};

}  // namespace

const DTypeFacts& facts(DType dtype) {
  const auto& row = kFacts[static_cast<std::size_t>(dtype)];
  HALFWATT_CHECK(row.dtype == dtype, "the table of dtypes is in the order of the enumeration");
  return row;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeFacts& row : kFacts) {
    if (row.name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

double half_ulp(DType dtype) { return std::ldexp(1.0, -(facts(dtype).mantissa_bits + 1)); }

std::optional<DType> promoted(DType one, DType other) {
  if (one == other) {
    return one;
  }
  if (!is_float(one) || !is_float(other)) {
    return std::nullopt;
  }
  const auto holds = [](DType wide, DType narrow) {
    return facts(wide).mantissa_bits >= facts(narrow).mantissa_bits &&
           facts(wide).exponent_bits >= facts(narrow).exponent_bits;
  };
  if (holds(one, other)) {
    return one;
  }
  return holds(other, one) ? other : DType::f32;
}

}  // namespace halfwatt
