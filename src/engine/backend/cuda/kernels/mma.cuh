#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engine/backend/cuda/kernels/types.cuh"

// Products of a warp on tensor cores, by mma.sync of Ampere and later: sums of 16 x 8, in fp32,
// of which a lane has rows lane / 4 and that plus 8, columns 2 (lane % 4) and the next.
// Operands lie in shared memory as rows `pitch` apart; which lane holds which number is said in
// the PTX manual, section "Matrix Fragments".

namespace halfwatt::cuda {

/// The sum of 16 x 8 numbers: {row, column}, the next column, and the same eight rows below.
using Sums = float[4];

// Code for older cards is empty and never run: is_for_tensor_cores() sees to it.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define HALFWATT_MMA 1
#endif

__device__ inline unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

/// Copies `kBytes` to shared memory in the background, or zeros where `is_there` is not.
template <int kBytes>
__device__ void copy_later(void* to, const void* from, bool is_there) {
  static_assert(kBytes == 4 || kBytes == 16);
#ifdef HALFWATT_MMA
  const int bytes = is_there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes));
  }
#endif
}
/// Ends a group of copies.
__device__ inline void end_copies() {
#ifdef HALFWATT_MMA
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until all groups but the last `kLeft` are there, for this thread.
template <int kLeft>
__device__ void wait_for_copies() {
#ifdef HALFWATT_MMA
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

/// Operands of 16 bits: f16 or bf16.
template <DType E>
struct HalfMath {
  using Number = std::uint16_t;
  static constexpr DType kDType = E;
  static constexpr int kDepth = 16;  ///< products that a step adds up
  static constexpr int kPad = 8;     ///< numbers between rows, so that 8 rows lie in all banks

  struct Left {
    unsigned part[4];
  };
  struct Right {
    unsigned part[2];
  };

  /// 16 rows of kDepth numbers.
  static __device__ Left left(const Number* tile, int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    Left it;
    load_matrices(tile + lane % 16 * pitch + lane / 16 * 8, it.part);
    return it;
  }
  /// Of a tile whose rows are what sums have as columns: 16 of them, kDepth deep.
  static __device__ void rows(const Number* tile, int pitch, Right (&two)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    unsigned four[4];
    load_matrices(tile + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8, four);
    two[0] = {four[0], four[1]};
    two[1] = {four[2], four[3]};
  }
  /// Of a tile whose columns are those of the sums: 16 of them, kDepth rows.
  static __device__ void columns(const Number* tile, int pitch, Right (&two)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    unsigned four[4];
    const Number* const at = tile + lane % 16 * pitch + lane / 16 * 8;
#ifdef HALFWATT_MMA
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3])
                 : "r"(shared_address(at))
                 : "memory");
#endif
    two[0] = {four[0], four[1]};
    two[1] = {four[2], four[3]};
  }
  /// Sums as the left side of the next product, whose rows of `columns` are their columns.
  template <int kCount>
  static __device__ Left from_sums(const Sums (&sums)[kCount], int first) {
    const Sums& a = sums[first];
    const Sums& b = sums[first + 1];
    return {{pair(a[0], a[1]), pair(a[2], a[3]), pair(b[0], b[1]), pair(b[2], b[3])}};
  }
  static __device__ void multiply_add(Sums& sums, const Left& a, const Right& b) {
#ifdef HALFWATT_MMA
    if constexpr (E == DType::f16) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
          "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a.part[0]), "r"(a.part[1]), "r"(a.part[2]), "r"(a.part[3]), "r"(b.part[0]),
            "r"(b.part[1]));
    } else {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
          "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a.part[0]), "r"(a.part[1]), "r"(a.part[2]), "r"(a.part[3]), "r"(b.part[0]),
            "r"(b.part[1]));
    }
#endif
  }
  /// Two neighbours, rounded to the nearest, to shared memory.
  static __device__ void store_pair(Number* to, float first, float second) {
    *reinterpret_cast<unsigned*>(to) = pair(first, second);
  }

 private:
  static __device__ void load_matrices(const Number* at, unsigned (&four)[4]) {
#ifdef HALFWATT_MMA
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3])
                 : "r"(shared_address(at))
                 : "memory");
#endif
  }
  static __device__ unsigned pair(float first, float second) {
    if constexpr (E == DType::f16) {
      const __half2 both = __floats2half2_rn(first, second);
      return *reinterpret_cast<const unsigned*>(&both);
    } else {
      const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
      return *reinterpret_cast<const unsigned*>(&both);
    }
  }
};

/// Operands of f32, rounded to tf32.
struct Tf32Math {
  using Number = float;
  static constexpr DType kDType = DType::f32;
  static constexpr int kDepth = 8;
  static constexpr int kPad = 4;

  struct Left {
    unsigned part[4];
  };
  struct Right {
    unsigned part[2];
  };

  /// 16 rows of kDepth numbers.
  static __device__ Left left(const Number* tile, int pitch) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const Number* const at = tile + lane / 4 * pitch + lane % 4;
    return {
        {rounded(at[0]), rounded(at[8 * pitch]), rounded(at[4]), rounded(at[8 * pitch + 4])}};
  }
  /// Of a tile whose rows are what sums have as columns: 16 of them, kDepth deep.
  static __device__ void rows(const Number* tile, int pitch, Right (&two)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Number* const at = tile + (8 * i + lane / 4) * pitch + lane % 4;
      two[i] = {rounded(at[0]), rounded(at[4])};
    }
  }
  /// Of a tile whose columns are those of the sums: 16 of them, kDepth rows.
  // A lane has two columns of sums side by side, and as a left side two that are four apart:
  // which is which does not matter to a sum over all of them, as long as both sides agree.
  static __device__ void columns(const Number* tile, int pitch, Right (&two)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Number* const at = tile + lane % 4 * 2 * pitch + 8 * i + lane / 4;
      two[i] = {rounded(at[0]), rounded(at[pitch])};
    }
  }
  template <int kCount>
  static __device__ Left from_sums(const Sums (&sums)[kCount], int first) {
    const Sums& a = sums[first];
    return {{rounded(a[0]), rounded(a[2]), rounded(a[1]), rounded(a[3])}};
  }
  static __device__ void multiply_add(Sums& sums, const Left& a, const Right& b) {
#ifdef HALFWATT_MMA
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a.part[0]), "r"(a.part[1]), "r"(a.part[2]), "r"(a.part[3]), "r"(b.part[0]),
          "r"(b.part[1]));
#endif
  }
  static __device__ void store_pair(Number* to, float first, float second) {
    *reinterpret_cast<float2*>(to) = make_float2(first, second);
  }

 private:
  static __device__ unsigned rounded(float value) {
    unsigned bits = 0;
#ifdef HALFWATT_MMA
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#endif
    return bits;
  }
};

}  // namespace halfwatt::cuda
