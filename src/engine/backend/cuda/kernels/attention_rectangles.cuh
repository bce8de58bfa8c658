#pragma once

#include <algorithm>

#include "engine/backend/cuda/kernels/attention.cuh"

// What serves every format and card where tensor cores do not, fp32 on all of them: products
// are fp32 multiply-adds. A block has some rows of a head (of queries, or of keys for their
// gradients) in shared memory and passes over tiles of the other side. A warp has rows of its
// own, a thread a rectangle of them in registers, so that a load serves several multiply-adds.
// Nothing is added up by atomics: a row's gradient is the work of one warp, so the bits are
// always the same.
//
// Bound: the fp32 units; shared memory delivers nearly as many operands as they take.

namespace halfwatt::cuda {

// On a multiprocessor. Turing has registers for one, and no room for large cuts.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kLeastBlocks = 1;
#else
constexpr int kLeastBlocks = 2;
#endif
constexpr int kLanes =
    16;  // threads side by side over the columns; a warp has two rows of them

/// How a block of kWide columns of heads is cut: rectangles of kRowsOfThread rows and
/// kColumnsOfThread columns of scores.
template <int kWidth, int kRowsOfThread, int kColumnsOfThread, int kWarpsOfBlock>
struct Cut {
  static constexpr int kWarps = kWarpsOfBlock;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kWide = kWidth;
  static constexpr int kTall = kRowsOfThread;
  static constexpr int kAcross = kColumnsOfThread;
  static constexpr int kRows = 2 * kWarps * kTall;     ///< of a block
  static constexpr int kTile = kLanes * kAcross;       ///< rows of the other side at a time
  static constexpr int kPairs = kWide / (2 * kLanes);  ///< of neighbouring columns, of a thread
  static constexpr int kPitch = kWide + 4;             ///< so that rows begin in other banks
  static constexpr int kWeightPitch = kTile + 4;
  static constexpr int kOwn = kRows * kPitch;    ///< floats of a block's rows
  static constexpr int kOther = kTile * kPitch;  ///< floats of a tile
  static constexpr int kWeights = kRows * kWeightPitch;

  using Scores = float[kTall][kAcross];
  using Sums = float[kTall][2 * kPairs];
};

struct Thread {
  int warp, half, lane;  ///< `lane` of kLanes

  __device__ Thread()
      : warp(static_cast<int>(threadIdx.x) / kWarp),
        half(static_cast<int>(threadIdx.x) % kWarp / kLanes),
        lane(static_cast<int>(threadIdx.x) % kLanes) {}
  /// Its `at`-th row of the block.
  template <class C>
  __device__ int row(int at) const {
    return warp * 2 * C::kTall + half + 2 * at;
  }
  /// The first of its `pair`-th pair of columns.
  __device__ int column(int pair) const { return 2 * lane + 2 * kLanes * pair; }
};

/// kCount rows of `width` numbers, `stride` apart, times `factor`; zeros beyond `valid` rows
/// and beyond the width.
template <DType E, class C, int kCount>
__device__ void fetch(const std::byte* from,
                      Index first,
                      Index stride,
                      int valid,
                      int width,
                      float factor,
                      float* to) {
  // Where rows of floats are whole fours: a quarter of the loads.
  if constexpr (E == DType::f32) {
    if (width % 4 == 0) {
      constexpr int kFours = C::kWide / 4;
#pragma unroll
      for (int i = static_cast<int>(threadIdx.x); i < kCount * kFours; i += C::kThreads) {
        const int row = i / kFours;
        const int column = i % kFours * 4;
        float4 four = {};
        if (row < valid && column < width) {
          four = reinterpret_cast<const float4*>(from)[(first + row * stride + column) / 4];
        }
        four = {factor * four.x, factor * four.y, factor * four.z, factor * four.w};
        *reinterpret_cast<float4*>(to + row * C::kPitch + column) = four;
      }
      return;
    }
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.x) / kWarp; row < kCount; row += C::kWarps) {
#pragma unroll
    for (int column = lane; column < C::kWide; column += kWarp) {
      const bool is_there = row < valid && column < width;
      to[row * C::kPitch + column] =
          is_there ? factor * load<E>(from, first + row * stride + column) : 0.0F;
    }
  }
}

/// Products of the thread's rows with rows lane, lane + kLanes, ... of a tile, kAcross of them.
template <class C, int kAcross>
__device__ void some_dots(const Thread& me,
                          const float* rows,
                          const float* tile,
                          typename C::Scores& sums) {
#pragma unroll 1
  for (int at = 0; at < C::kWide; at += 4) {
    float4 others[kAcross];
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      others[j] =
          *reinterpret_cast<const float4*>(tile + (me.lane + j * kLanes) * C::kPitch + at);
    }
#pragma unroll
    for (int i = 0; i < C::kTall; ++i) {
      const float4 own = *reinterpret_cast<const float4*>(rows + me.row<C>(i) * C::kPitch + at);
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        sums[i][j] += own.x * others[j].x;
        sums[i][j] += own.y * others[j].y;
        sums[i][j] += own.z * others[j].z;
        sums[i][j] += own.w * others[j].w;
      }
    }
  }
}

/// The same of all rows of a tile that has `valid`; 0 of those that it lacks.
template <class C>
__device__ void dots(const Thread& me,
                     const float* rows,
                     const float* tile,
                     int valid,
                     typename C::Scores& sums) {
#pragma unroll
  for (auto& row : sums) {
#pragma unroll
    for (float& sum : row) {
      sum = 0;
    }
  }
  // 197 tokens leave 5 for their last tile.
  if (valid <= kLanes) {
    some_dots<C, 1>(me, rows, tile, sums);
  } else {
    some_dots<C, C::kAcross>(me, rows, tile, sums);
  }
}

/// Leaves the thread's scores where its warp finds them.
template <class C>
__device__ void share(const Thread& me, const typename C::Scores& scores, float* weights) {
  __syncwarp();  // the last ones are read
#pragma unroll
  for (int i = 0; i < C::kTall; ++i) {
#pragma unroll
    for (int j = 0; j < C::kAcross; ++j) {
      weights[me.row<C>(i) * C::kWeightPitch + me.lane + j * kLanes] = scores[i][j];
    }
  }
  __syncwarp();
}

/// sums += the shared weights of the thread's rows times the first `valid` rows of a tile,
/// which are fours with those behind them, whose weights are 0.
template <class C>
__device__ void mix(const Thread& me,
                    const float* weights,
                    const float* tile,
                    int valid,
                    typename C::Sums& sums) {
  const int end = min(valid, C::kTile);
  for (int at = 0; at < end; at += 4) {
    float4 own[C::kTall];
#pragma unroll
    for (int i = 0; i < C::kTall; ++i) {
      own[i] = *reinterpret_cast<const float4*>(weights + me.row<C>(i) * C::kWeightPitch + at);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int pair = 0; pair < C::kPairs; ++pair) {
        const float2 other =
            *reinterpret_cast<const float2*>(tile + (at + k) * C::kPitch + me.column(pair));
#pragma unroll
        for (int i = 0; i < C::kTall; ++i) {
          const float weight = k == 0   ? own[i].x
                               : k == 1 ? own[i].y
                               : k == 2 ? own[i].z
                                        : own[i].w;
          sums[i][2 * pair] += weight * other.x;
          sums[i][2 * pair + 1] += weight * other.y;
        }
      }
    }
  }
}

template <DType E, class C>
__device__ void store_row(const Thread& me,
                          const float (&sums)[2 * C::kPairs],
                          float factor,
                          int width,
                          std::byte* to,
                          Index first) {
#pragma unroll
  for (int at = 0; at < 2 * C::kPairs; ++at) {
    const int column = me.column(at / 2) + at % 2;
    if (column < width) {
      store<E>(to, first + column, sums[at] * factor);
    }
  }
}

/// Over the threads of a row.
__device__ inline float row_sum(float value) {
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, apart);
  }
  return value;
}
__device__ inline float row_max(float value) {
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, apart));
  }
  return value;
}

/// The rows that a block has, of which head.
struct BlockRows {
  Head head;
  int first, valid;

  template <class C>
  __device__ static BlockRows of(const AttentionShape& shape) {
    const auto tokens = static_cast<int>(shape.tokens);
    const auto block = static_cast<int>(blockIdx.x);
    const int blocks = (tokens + C::kRows - 1) / C::kRows;
    const int first = block % blocks * C::kRows;
    return {head_of(shape, block / blocks), first, tokens - first};
  }
};

/// Bytes of a block of attention, and of one of its gradients.
template <class C>
int shared_bytes() {
  return (C::kOwn + 2 * C::kOther + C::kWeights) * static_cast<int>(sizeof(float));
}
template <class C>
int gradient_bytes() {
  constexpr int kSums = 2 * std::max(C::kRows, C::kTile);
  return shared_bytes<C>() + (C::kOwn + kSums) * static_cast<int>(sizeof(float));
}

/// How much a block of this device may have.
inline int most_shared_bytes() {
  int device = 0;
  int bytes = 0;
  check(cudaGetDevice(&device), "ask for the device");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "ask for shared memory");
  return bytes;
}

template <class C, class Job>
void launch(void (*kernel)(Job), const Job& job, int bytes, Stream stream) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "shared memory of attention");
  kernel<<<grid_of(job.shape, C::kRows), C::kThreads, static_cast<std::size_t>(bytes),
           stream>>>(job);
}

/// Calls `function(Tag<E>(), C())`. The large cut is for fp32 on cards with room for it: 16
/// bits come here only from cards without tensor cores for them and from heads of odd widths.
template <class Function>
void with_cut(const Attention& job, Function&& function) {
  with_storage(job.qkv.dtype, [&](auto tag) {
    const bool is_narrow = job.shape.width <= 64;
    if constexpr (decltype(tag)::kDType == DType::f32) {
      using Large = Cut<64, 4, 4, 8>;
      if (is_narrow && gradient_bytes<Large>() <= most_shared_bytes()) {
        return function(tag, Large());
      }
    }
    is_narrow ? function(tag, Cut<64, 4, 2, 4>()) : function(tag, Cut<96, 4, 2, 4>());
  });
}

}  // namespace halfwatt::cuda
