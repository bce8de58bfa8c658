#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace halfwatt {

/// How an element is stored. `tf32` is a float whose low 13 bits of mantissa are zero; files
/// know it as f32.
enum class DType : std::uint8_t {
  f64,
  f32,
  tf32,
  f16,
  bf16,
  e4m3,  ///< fp8 for weights and activations: no infinity, 448 at most
  e5m2,  ///< fp8 for gradients
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
};
inline constexpr int kDTypes = 16;

/// What is to be known of a dtype. Of integers only the first three are set.
struct DTypeFacts {
  DType dtype;
  std::string_view name;  ///< as a user writes it: "bf16"
  std::size_t bytes;
  int mantissa_bits = 0;  ///< stored ones; 0 if it is no float
  int exponent_bits = 0;
  double max = 0;            ///< largest finite number
  double min_normal = 0;     ///< smallest positive normal number
  double min_subnormal = 0;  ///< smallest positive number
};

/// The row of `dtype`.
const DTypeFacts& facts(DType dtype);
/// The dtype that a user calls `name`; nullopt if there is none.
std::optional<DType> dtype_named(std::string_view name);

inline std::string_view text(DType dtype) { return facts(dtype).name; }
inline std::size_t bytes_of(DType dtype) { return facts(dtype).bytes; }
inline bool is_float(DType dtype) { return facts(dtype).exponent_bits > 0; }

/// Relative error of rounding to nearest: half a unit in the last place, 2^-(mantissa + 1).
double half_ulp(DType dtype);

/// What an operation on both computes in, as PyTorch promotes: of two floats the one with more
/// mantissa and range; f16 with bf16 is f32. nullopt unless both are floats or equal.
std::optional<DType> promoted(DType one, DType other);

}  // namespace halfwatt
