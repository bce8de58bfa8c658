#pragma once

#include "engine/backend/cuda/kernels/attention.cuh"
#include "engine/backend/cuda/kernels/mma.cuh"

// Attention on tensor cores. A block has 64 or 112 rows of queries (for the gradients of keys
// and values: of keys) of one image and head, a warp 16 of them, and the other side passes by
// in tiles, the next on its way while one is computed. Scores never leave the registers:
// forward keeps the largest of a row and the sum of weights from tile to tile, backward
// computes them again from the log of that sum. Tokens are rounded up to 16, not to a tile: 197
// cost 208.

namespace halfwatt::cuda {

constexpr int kFewWarps = 4;
constexpr int kManyWarps = 7;

/// A block of so many warps, each of which has 16 rows; so many of them are on a multiprocessor
/// at once, at least, which is what is left of its registers for a thread: 168 with three of
/// the smaller ones, 128 with two of the larger.
template <int kWarps, int kBlocks>
struct Block {
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kRows = kWarps * 16;
  static constexpr int kAtOnce = kBlocks;
};
template <int kWarps>
using UsualBlock = Block<kWarps, kWarps == kFewWarps ? 3 : 2>;

constexpr int kStep = 32;  // rows of a tile of the gradients
constexpr float kLog2E = 1.44269504F;

template <class Math, int D>
constexpr int kPitch = D + Math::kPad;

// Rows of a tile of keys: enough to have many products under way, and few enough for registers.
template <class Math>
constexpr int kKeys = sizeof(typename Math::Number) == 2 ? 64 : 32;

// Tiles under way at once. Four of keys are all that 197 tokens have.
template <class Math, int D>
constexpr int kStages = sizeof(typename Math::Number) == 2 && D <= 64 ? 4 : 2;

/// Calls `begin()` once the rows of the block are there, whose copies were sent for and not
/// ended yet; then `compute(tile, its place)` for all tiles in order, each of which
/// `fetch(tile, place)` has sent for some tiles before.
template <int kPlaces, class Fetch, class Begin, class Compute>
__device__ void in_tiles(Index count, Fetch fetch, Begin begin, Compute compute) {
  const int tiles = static_cast<int>(count);
  end_copies();
#pragma unroll
  for (int tile = 0; tile < kPlaces; ++tile) {
    if (tile < tiles) {
      fetch(tile, tile);
    }
    end_copies();
  }
  wait_for_copies<kPlaces>();
  __syncthreads();
  begin();
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies<kPlaces - 1>();
    __syncthreads();
    compute(tile, tile % kPlaces);
    if (tile + kPlaces < tiles) {
      __syncthreads();  // before what others may still read is overwritten
      fetch(tile + kPlaces, tile % kPlaces);
    }
    end_copies();
  }
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <class Math>
__device__ const typename Math::Number* numbers(const Elements& of) {
  return reinterpret_cast<const typename Math::Number*>(of.data);
}

/// Sends for kTileRows rows of D numbers; zeros where there are none.
template <class Math, int D, int kTileRows, int kThreads>
__device__ void fetch(const typename Math::Number* from,
                      Index stride,
                      Index valid,
                      int width,
                      typename Math::Number* to) {
  constexpr int kChunk = 16 / static_cast<int>(sizeof(typename Math::Number));
  constexpr int kChunks = D / kChunk;
#pragma unroll
  for (int i = 0; i < (kTileRows * kChunks + kThreads - 1) / kThreads; ++i) {
    const int at = i * kThreads + static_cast<int>(threadIdx.x);
    if (kTileRows * kChunks % kThreads != 0 && at >= kTileRows * kChunks) {
      return;
    }
    const int row = at / kChunks;
    const int column = at % kChunks * kChunk;
    const bool is_there = row < valid && column < width;
    copy_later<16>(to + row * kPitch<Math, D> + column,
                   is_there ? from + row * stride + column : from, is_there);
  }
}

/// 16 rows of D numbers as left sides.
template <class Math, int D>
struct LeftRows {
  typename Math::Left part[D / Math::kDepth];

  /// From a tile in shared memory.
  __device__ void load(const typename Math::Number* tile) {
#pragma unroll
    for (int at = 0; at < D / Math::kDepth; ++at) {
      part[at] = Math::left(tile + at * Math::kDepth, kPitch<Math, D>);
    }
  }
};

/// sums [16, rows of the tile] = left tile^T, for the first `sixteens` times 16 rows of it.
template <class Math, int D, int kCount>
__device__ void scores(const LeftRows<Math, D>& left,
                       const typename Math::Number* tile,
                       int sixteens,
                       Sums (&sums)[kCount]) {
#pragma unroll
  for (int at = 0; at < kCount / 2; ++at) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[2 * at][i] = 0;
      sums[2 * at + 1][i] = 0;
    }
    if (at < sixteens) {
#pragma unroll
      for (int depth = 0; depth < D / Math::kDepth; ++depth) {
        typename Math::Right two[2];
        Math::rows(tile + at * 16 * kPitch<Math, D> + depth * Math::kDepth, kPitch<Math, D>,
                   two);
        Math::multiply_add(sums[2 * at], left.part[depth], two[0]);
        Math::multiply_add(sums[2 * at + 1], left.part[depth], two[1]);
      }
    }
  }
}

/// sums [16, D] += weights [16, rows of the tile] tile.
template <class Math, int D, int kCount>
__device__ void mix(const Sums (&weights)[kCount],
                    const typename Math::Number* tile,
                    int sixteens,
                    Sums (&sums)[D / 8]) {
  constexpr int kColumns = Math::kDepth / 8;  // of `weights` that a step takes
#pragma unroll
  for (int at = 0; at < kCount / kColumns; ++at) {
    if (at * Math::kDepth < sixteens * 16) {
      const typename Math::Left left = Math::from_sums(weights, at * kColumns);
#pragma unroll
      for (int column = 0; column < D / 16; ++column) {
        typename Math::Right two[2];
        Math::columns(tile + at * Math::kDepth * kPitch<Math, D> + column * 16, kPitch<Math, D>,
                      two);
        Math::multiply_add(sums[2 * column], left, two[0]);
        Math::multiply_add(sums[2 * column + 1], left, two[1]);
      }
    }
  }
}

/// The 16 rows of a warp, upper and lower eight times a factor each, by way of shared memory
/// that is its own by now.
template <class Math, int D>
__device__ void store_rows(const Sums (&sums)[D / 8],
                           float upper,
                           float lower,
                           typename Math::Number* shared,
                           typename Math::Number* to,
                           Index stride,
                           Index valid,
                           int width) {
  using Number = typename Math::Number;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  Number* const at = shared + lane / 4 * kPitch<Math, D> + lane % 4 * 2;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    Math::store_pair(at + n * 8, sums[n][0] * upper, sums[n][1] * upper);
    Math::store_pair(at + 8 * kPitch<Math, D> + n * 8, sums[n][2] * lower, sums[n][3] * lower);
  }
  __syncwarp();
  constexpr int kChunk = 16 / static_cast<int>(sizeof(Number));
  constexpr int kChunks = D / kChunk;
#pragma unroll
  for (int i = lane; i < 16 * kChunks; i += kWarp) {
    const int row = i / kChunks;
    const int column = i % kChunks * kChunk;
    if (row < valid && column < width) {
      *reinterpret_cast<uint4*>(to + row * stride + column) =
          *reinterpret_cast<const uint4*>(shared + row * kPitch<Math, D> + column);
    }
  }
}

/// Sixteens of rows that a tile of at most `kTileRows` has.
template <int kTileRows>
__device__ int sixteens_of(Index valid) {
  return static_cast<int>(min((valid + 15) / 16, Index{kTileRows / 16}));
}

/// Over the four lanes that share a row.
__device__ inline float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 2));
}
__device__ inline float row_sum(float value) {
  value += __shfl_xor_sync(0xffffffffU, value, 1);
  return value + __shfl_xor_sync(0xffffffffU, value, 2);
}

/// What is the same in all lanes, so that the compiler knows it: shuffles may be in its
/// branches.
__device__ inline bool of_warp(bool same) { return __any_sync(0xffffffffU, same); }

/// What a block works on.
struct Work {
  Head head;
  Index tokens;
  Index first;  ///< token of the block's first row
  int width;
  int row;        ///< of the warp's first, in the block
  Index token;    ///< of that row
  bool has_rows;  ///< whether any of the warp's rows is there

  __device__ Work(const AttentionShape& shape, int rows)
      : head(head_of(shape, blockIdx.x / blocks(shape, rows))),
        tokens(shape.tokens),
        first(blockIdx.x % blocks(shape, rows) * rows),
        width(static_cast<int>(shape.width)),
        row(static_cast<int>(threadIdx.x) / kWarp * 16),
        token(first + row),
        has_rows(of_warp(token < shape.tokens)) {}

  /// Sends for the block's own rows, of what a head has from `from` on.
  template <class Math, int D, class Block>
  __device__ void fetch_own(const typename Math::Number* from,
                            Index stride,
                            typename Math::Number* to) const {
    fetch<Math, D, Block::kRows, Block::kThreads>(from + first * stride, stride, tokens - first,
                                                  width, to);
  }
  __device__ Index tiles(int rows) const { return (tokens + rows - 1) / rows; }
  /// Sends for a tile of the other side.
  template <class Math, int D, class Block, int kTileRows>
  __device__ void fetch_tile(const typename Math::Number* from,
                             Index stride,
                             int tile,
                             typename Math::Number* to) const {
    const Index begin = Index{tile} * kTileRows;
    fetch<Math, D, kTileRows, Block::kThreads>(from + begin * stride, stride, tokens - begin,
                                               width, to);
  }

 private:
  static __device__ Index blocks(const AttentionShape& shape, int rows) {
    return (shape.tokens + rows - 1) / rows;
  }
};

template <class Math, int D>
constexpr int shared_bytes(int rows, int tile_rows) {
  return (rows + 2 * kStages<Math, D> * tile_rows) * kPitch<Math, D> *
         static_cast<int>(sizeof(typename Math::Number));
}

template <class Block, class Job>
void launch(void (*kernel)(Job), const Job& job, int bytes, Stream stream) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "shared memory of attention");
  const unsigned grid = grid_of(job.shape, Block::kRows);
  kernel<<<grid, Block::kThreads, static_cast<std::size_t>(bytes), stream>>>(job);
}

template <int kValue>
struct Constant {
  static constexpr int value = kValue;
};

/// Calls `function(Math(), Constant<D>())` with the least D that heads fit in.
template <class Job, class Function>
void with_math(const Job& job, Function&& function) {
  const auto of = [&](auto math) {
    if (job.shape.width <= 32) {
      function(math, Constant<32>());
    } else if (job.shape.width <= 64) {
      function(math, Constant<64>());
    } else if constexpr (sizeof(typename decltype(math)::Number) == 2) {
      function(math, Constant<96>());
    }
  };
  switch (job.qkv.dtype) {
    case DType::f16:
      return of(HalfMath<DType::f16>());
    case DType::bf16:
      return of(HalfMath<DType::bf16>());
    default:
      return of(Tf32Math());
  }
}

/// Whether larger blocks are better: they leave no more rows over, and read the other side less
/// often.
inline bool takes_many_warps(const AttentionShape& shape) {
  const auto warps_in_all = [&](Index warps) {
    const Index rows = warps * 16;
    return (shape.tokens + rows - 1) / rows * warps;
  };
  return warps_in_all(kManyWarps) <= warps_in_all(kFewWarps);
}

}  // namespace halfwatt::cuda
