#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "base/check.h"
#include "engine/backend/cuda/device.h"
#include "engine/backend/cuda/kernels/memory.h"
#include "engine/tensor/convert.h"

// What the .cu files share. Between floats of 16 bits and f32 the device converts in one
// instruction; all else goes by tensor/convert's functions. Both round to the nearest, ties to
// even.

namespace halfwatt::cuda {

template <DType D>
struct Tag {
  static constexpr DType kDType = D;
};

template <DType D>
__device__ float widened(Stored<D> code) {
  if constexpr (D == DType::f16) {
    return __half2float(__ushort_as_half(code));
  } else if constexpr (D == DType::bf16) {
    return __uint_as_float(static_cast<unsigned>(code) << 16U);
  } else {
    return static_cast<float>(decode<D>(code));
  }
}
template <DType D, class Float>
__device__ Stored<D> narrowed(Float value) {
  constexpr bool kIsFloat = sizeof(Float) == sizeof(float);
  if constexpr (D == DType::f16 && kIsFloat) {
    return __half_as_ushort(__float2half_rn(value));
  } else if constexpr (D == DType::bf16 && kIsFloat) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  } else {
    return encode<D>(value);
  }
}

template <DType D>
__device__ float load(const std::byte* from, Index at) {
  return widened<D>(reinterpret_cast<const Stored<D>*>(from)[at]);
}
template <DType D, class Float>
__device__ void store(std::byte* to, Index at, Float value) {
  reinterpret_cast<Stored<D>*>(to)[at] = narrowed<D>(value);
}

/// `value` as it is once it was stored.
template <DType D>
__device__ float as_stored(float value) {
  return widened<D>(narrowed<D>(value));
}

/// One of few elements, whose dtype is looked at each time.
__device__ inline float load(const Elements& from, Index at) {
  switch (from.dtype) {
    case DType::f16:
      return load<DType::f16>(from.data, at);
    case DType::bf16:
      return load<DType::bf16>(from.data, at);
    case DType::e4m3:
      return load<DType::e4m3>(from.data, at);
    case DType::e5m2:
      return load<DType::e5m2>(from.data, at);
    case DType::f64:
      return static_cast<float>(reinterpret_cast<const double*>(from.data)[at]);
    default:
      return load<DType::f32>(from.data, at);
  }
}
/// The same the other way; a double is rounded once.
template <class Float>
__device__ void store(const Elements& to, Index at, Float value) {
  switch (to.dtype) {
    case DType::f16:
      return store<DType::f16>(to.data, at, value);
    case DType::bf16:
      return store<DType::bf16>(to.data, at, value);
    case DType::e4m3:
      return store<DType::e4m3>(to.data, at, value);
    case DType::e5m2:
      return store<DType::e5m2>(to.data, at, value);
    case DType::tf32:
      return store<DType::tf32>(to.data, at, value);
    case DType::f64:
      return store<DType::f64>(to.data, at, static_cast<double>(value));
    default:
      return store<DType::f32>(to.data, at, value);
  }
}

/// Calls `function(Tag<D>())` with how a large tensor is stored; a tf32 is a float in memory.
template <class Function>
void with_storage(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f32:
    case DType::tf32:
      return function(Tag<DType::f32>());
    case DType::f16:
      return function(Tag<DType::f16>());
    case DType::bf16:
      return function(Tag<DType::bf16>());
    default:
      HALFWATT_CHECK(false, "large tensors on the GPU are f32, f16 or bf16");
  }
}

// Eight neighbours at a time, 16 bytes an access, where a tensor's rows are whole eights.

constexpr int kEight = 8;

inline bool is_in_eights(const Elements& of) {
  return reinterpret_cast<std::uintptr_t>(of.data) % 16 == 0;
}

template <DType D>
__device__ void load_eight(const std::byte* from, Index first, float (&to)[kEight]) {
  constexpr int kWords = kEight * static_cast<int>(sizeof(Stored<D>)) / 16;
  uint4 words[kWords];
  const auto* const at =
      reinterpret_cast<const uint4*>(reinterpret_cast<const Stored<D>*>(from) + first);
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words[i] = at[i];
  }
  const auto* const codes = reinterpret_cast<const Stored<D>*>(words);
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    to[i] = widened<D>(codes[i]);
  }
}
template <DType D>
__device__ void store_eight(std::byte* to, Index first, const float (&from)[kEight]) {
  constexpr int kWords = kEight * static_cast<int>(sizeof(Stored<D>)) / 16;
  uint4 words[kWords];
  auto* const codes = reinterpret_cast<Stored<D>*>(words);
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    codes[i] = narrowed<D>(from[i]);
  }
  auto* const at = reinterpret_cast<uint4*>(reinterpret_cast<Stored<D>*>(to) + first);
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    at[i] = words[i];
  }
}
/// Of elements whose dtype is looked at each time.
__device__ inline void load_eight(const Elements& from, Index first, float (&to)[kEight]) {
  switch (from.dtype) {
    case DType::f16:
      return load_eight<DType::f16>(from.data, first, to);
    case DType::bf16:
      return load_eight<DType::bf16>(from.data, first, to);
    default:
      return load_eight<DType::f32>(from.data, first, to);
  }
}

constexpr int kThreads = 256;
constexpr int kWarp = 32;

/// Blocks of kThreads for a loop over `count`, each thread taking several where there are many.
inline unsigned blocks_for(Index count) {
  constexpr Index kMostBlocks = 16 * 1024;
  return static_cast<unsigned>(
      std::clamp<Index>((count + kThreads - 1) / kThreads, 1, kMostBlocks));
}

/// Calls `body(i)` for all of [0, count).
template <class Body>
__device__ void each(Index count, Body body) {
  const Index step = Index{gridDim.x} * blockDim.x;
  for (Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    body(i);
  }
}

/// The sum over a warp, in every lane, always in the same order.
template <class T>
__device__ T warp_sum(T value) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, apart);
  }
  return value;
}
__device__ inline float warp_max(float value) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, apart));
  }
  return value;
}

/// Throws Failure if the last launch was none.
inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

/// Calls `function(T())` with an unsigned integer of as many bytes.
template <class Function>
void with_bytes(std::size_t bytes, Function&& function) {
  switch (bytes) {
    case 8:
      return function(std::uint64_t{});
    case 4:
      return function(std::uint32_t{});
    case 2:
      return function(std::uint16_t{});
    default:
      return function(std::uint8_t{});
  }
}

}  // namespace halfwatt::cuda
