#include "engine/backend/cuda/kernels/attention.cuh"
#include "engine/backend/cuda/kernels/mma.cuh"

// Attention on tensor cores. A block has 64 or 112 rows of queries (for the gradients of keys
// and values: of keys) of one image and head, a warp 16 of them, and the other side passes by
// in tiles, the next on its way while one is computed. Scores never leave the registers:
// forward keeps the largest of a row and the sum of weights from tile to tile, backward
// computes them again from the log of that sum. Tokens are rounded up to 16, not to a tile: 197
// cost 208.
//
// Gradients are two kernels, one for queries and one for keys and values: seven products where
// five would do, but no row is added up by two blocks, so the bits are always the same and no
// fp32 copy of the queries' gradient goes through memory.

namespace halfwatt::cuda {
namespace {

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

__device__ float exp2_fast(float x) {
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
__device__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 2));
}
__device__ float row_sum(float value) {
  value += __shfl_xor_sync(0xffffffffU, value, 1);
  return value + __shfl_xor_sync(0xffffffffU, value, 2);
}

/// What is the same in all lanes, so that the compiler knows it: shuffles may be in its
/// branches.
__device__ bool of_warp(bool same) { return __any_sync(0xffffffffU, same); }

/// What a block works on.
struct Work {
  Head head;
  Index first;  ///< row of the block's first
  int width;
  int lane;
  int row;  ///< of the warp, in the block

  __device__ Work(const AttentionShape& shape, int rows)
      : head(head_of(shape, blockIdx.x / blocks(shape, rows))),
        first(blockIdx.x % blocks(shape, rows) * rows),
        width(static_cast<int>(shape.width)),
        lane(static_cast<int>(threadIdx.x) % kWarp),
        row(static_cast<int>(threadIdx.x) / kWarp * 16) {}

 private:
  static __device__ Index blocks(const AttentionShape& shape, int rows) {
    return (shape.tokens + rows - 1) / rows;
  }
};

template <class Math, int D, class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kAtOnce)
    attention_kernel(Attention job) {
  using Number = typename Math::Number;
  constexpr int kRows = Block::kRows;
  constexpr int kThreads = Block::kThreads;
  constexpr int kTile = kKeys<Math>;
  constexpr int kTileSize = kTile * kPitch<Math, D>;
  constexpr int kPlaces = kStages<Math, D>;
  extern __shared__ uint4 memory[];
  Number* const queries = reinterpret_cast<Number*>(memory);
  Number* const keys = queries + kRows * kPitch<Math, D>;
  Number* const values = keys + kPlaces * kTileSize;
  const Work work(job.shape, kRows);
  const Head& head = work.head;
  const Index tokens = job.shape.tokens;
  const Number* const q = numbers<Math>(job.qkv) + head.qkv;
  const auto fetch_keys = [&](int tile, int place) {
    const Index key = Index{tile} * kTile;
    const Number* const from = q + head.part + key * head.stride;
    const int to = place * kTileSize;
    fetch<Math, D, kTile, kThreads>(from, head.stride, tokens - key, work.width, keys + to);
    fetch<Math, D, kTile, kThreads>(from + head.part, head.stride, tokens - key, work.width,
                                    values + to);
  };
  fetch<Math, D, kRows, kThreads>(q + work.first * head.stride, head.stride,
                                  tokens - work.first, work.width, queries);
  LeftRows<Math, D> query;
  const bool has_rows = of_warp(work.first + work.row < tokens);
  const float factor = job.scale * kLog2E;
  float most[2] = {kNothing, kNothing};
  float total[2] = {0, 0};
  Sums sums[D / 8] = {};
  const auto begin = [&] { query.load(queries + work.row * kPitch<Math, D>); };
  in_tiles<kPlaces>((tokens + kTile - 1) / kTile, fetch_keys, begin, [&](int tile, int place) {
    if (has_rows) {
      const Index valid = tokens - Index{tile} * kTile;
      const int sixteens = sixteens_of<kTile>(valid);
      Sums weights[kTile / 8];
      scores<Math, D>(query, keys + place * kTileSize, sixteens, weights);
      if (valid < kTile) {
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            if (n * 8 + work.lane % 4 * 2 + i % 2 >= valid) {
              weights[n][i] = kNothing;
            }
          }
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float now = most[half];
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n) {
          now = fmaxf(now, fmaxf(weights[n][2 * half], weights[n][2 * half + 1]));
        }
        now = row_max(now);
        const float shift = shift_of(now) * factor;
        const float before = exp2_fast(most[half] * factor - shift);
        most[half] = now;
        float added = 0;
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            weights[n][i] = exp2_fast(weights[n][i] * factor - shift);
            added += weights[n][i];
          }
        }
        total[half] = total[half] * before + added;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          sums[n][2 * half] *= before;
          sums[n][2 * half + 1] *= before;
        }
      }
      mix<Math, D>(weights, values + place * kTileSize, sixteens, sums);
    }
  });
  if (!has_rows) {
    return;
  }
  float share[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] = row_sum(total[half]);
    share[half] = total[half] == 0 ? 0.0F : 1 / total[half];
    const Index token = work.first + work.row + half * 8 + work.lane / 4;
    if (work.lane % 4 == 0 && token < tokens) {
      store(job.lse, head.row + token, shift_of(most[half]) * job.scale + logf(total[half]));
    }
  }
  const Index row = work.first + work.row;
  store_rows<Math, D>(
      sums, share[0], share[1], queries + work.row * kPitch<Math, D>,
      reinterpret_cast<Number*>(job.out.data) + head.out + row * head.out_stride,
      head.out_stride, tokens - row, work.width);
}

/// out . dout of one row of the warp, in two lanes; one of each pair has rows lane / 2.
template <class Math, int D>
__device__ float along_row(const typename Math::Number* dout,
                           const typename Math::Number* out,
                           bool is_there,
                           int width) {
  constexpr int kChunk = 16 / static_cast<int>(sizeof(typename Math::Number));
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float sum = 0;
#pragma unroll
  for (int chunk = lane % 2; chunk < D / kChunk; chunk += 2) {
    if (is_there && chunk * kChunk < width) {
      const uint4 a = *reinterpret_cast<const uint4*>(dout + chunk * kChunk);
      const uint4 b = *reinterpret_cast<const uint4*>(out + chunk * kChunk);
      const auto* const of_dout = reinterpret_cast<const std::byte*>(&a);
      const auto* const of_out = reinterpret_cast<const std::byte*>(&b);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        sum += load<Math::kDType>(of_dout, i) * load<Math::kDType>(of_out, i);
      }
    }
  }
  return sum + __shfl_xor_sync(0xffffffffU, sum, 1);
}

// Also stores out . dout, which the gradients of keys read.
template <class Math, int D, class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kAtOnce)
    query_gradient_kernel(AttentionGradient job) {
  using Number = typename Math::Number;
  constexpr int kRows = Block::kRows;
  constexpr int kThreads = Block::kThreads;
  constexpr int kTileSize = kStep * kPitch<Math, D>;
  constexpr int kPlaces = kStages<Math, D>;
  // Of registers in large blocks: one side's operands are loaded again for every tile.
  constexpr bool kIsShort = Block::kAtOnce * Block::kThreads > 384;
  extern __shared__ uint4 memory[];
  Number* const queries = reinterpret_cast<Number*>(memory);
  Number* const douts = queries + kRows * kPitch<Math, D>;
  Number* const keys = douts + kRows * kPitch<Math, D>;
  Number* const values = keys + kPlaces * kTileSize;
  const Work work(job.shape, kRows);
  const Head& head = work.head;
  const Index tokens = job.shape.tokens;
  const Number* const q = numbers<Math>(job.qkv) + head.qkv;
  const auto fetch_keys = [&](int tile, int place) {
    const Index key = Index{tile} * kStep;
    const Number* const from = q + head.part + key * head.stride;
    const int to = place * kTileSize;
    fetch<Math, D, kStep, kThreads>(from, head.stride, tokens - key, work.width, keys + to);
    fetch<Math, D, kStep, kThreads>(from + head.part, head.stride, tokens - key, work.width,
                                    values + to);
  };
  fetch<Math, D, kRows, kThreads>(q + work.first * head.stride, head.stride,
                                  tokens - work.first, work.width, queries);
  fetch<Math, D, kRows, kThreads>(
      numbers<Math>(job.dout) + head.out + work.first * head.out_stride, head.out_stride,
      tokens - work.first, work.width, douts);
  const Index row = work.first + work.row;
  const bool has_rows = of_warp(row < tokens);
  LeftRows<Math, D> query;
  LeftRows<Math, D> dout;
  float along[2] = {};
  float log_sum[2] = {};
  const auto begin = [&] {
    query.load(queries + work.row * kPitch<Math, D>);
    if (!kIsShort) {
      dout.load(douts + work.row * kPitch<Math, D>);
    }
    if (has_rows) {
      const int own = work.lane / 2;
      const bool is_there = row + own < tokens;
      const float sum = along_row<Math, D>(
          douts + (work.row + own) * kPitch<Math, D>,
          numbers<Math>(job.out) + head.out + (is_there ? row + own : row) * head.out_stride,
          is_there, work.width);
      if (work.lane % 2 == 0 && is_there) {
        job.along[head.row + row + own] = sum;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        along[half] = __shfl_sync(0xffffffffU, sum, 2 * (work.lane / 4 + 8 * half));
        const Index token = min(row + work.lane / 4 + 8 * half, tokens - 1);
        log_sum[half] = shift_of(load(job.lse, head.row + token)) * kLog2E;
      }
    }
  };
  const float factor = job.scale * kLog2E;
  Sums sums[D / 8] = {};
  in_tiles<kPlaces>((tokens + kStep - 1) / kStep, fetch_keys, begin, [&](int tile, int place) {
    if (has_rows) {
      const Index valid = tokens - Index{tile} * kStep;
      const int sixteens = sixteens_of<kStep>(valid);
      Sums weights[kStep / 8];
      Sums slopes[kStep / 8];
      scores<Math, D>(query, keys + place * kTileSize, sixteens, weights);
      if (kIsShort) {
        dout.load(douts + work.row * kPitch<Math, D>);
      }
      scores<Math, D>(dout, values + place * kTileSize, sixteens, slopes);
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const bool is_there = n * 8 + work.lane % 4 * 2 + i % 2 < valid;
          const float weight = exp2_fast(weights[n][i] * factor - log_sum[i / 2]);
          slopes[n][i] = is_there ? weight * (slopes[n][i] - along[i / 2]) : 0.0F;
        }
      }
      mix<Math, D>(slopes, keys + place * kTileSize, sixteens, sums);
    }
  });
  if (has_rows) {
    store_rows<Math, D>(sums, job.scale, job.scale, queries + work.row * kPitch<Math, D>,
                        reinterpret_cast<Number*>(job.dqkv.data) + head.qkv + row * head.stride,
                        head.stride, tokens - row, work.width);
  }
}

template <class Math, int D, class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kAtOnce)
    key_gradient_kernel(AttentionGradient job) {
  using Number = typename Math::Number;
  constexpr int kRows = Block::kRows;
  constexpr int kThreads = Block::kThreads;
  constexpr int kTileSize = kStep * kPitch<Math, D>;
  constexpr int kPlaces = kStages<Math, D>;
  extern __shared__ uint4 memory[];
  Number* const keys = reinterpret_cast<Number*>(memory);
  Number* const values = keys + kRows * kPitch<Math, D>;
  Number* const queries = values + kRows * kPitch<Math, D>;
  Number* const douts = queries + kPlaces * kTileSize;
  auto* const log_sums = reinterpret_cast<float*>(douts + kPlaces * kTileSize);
  float* const alongs = log_sums + kPlaces * kStep;
  const Work work(job.shape, kRows);
  const Head& head = work.head;
  const Index tokens = job.shape.tokens;
  const Number* const q = numbers<Math>(job.qkv) + head.qkv;
  const Number* const from_dout = numbers<Math>(job.dout) + head.out;
  const auto* const lse = reinterpret_cast<const float*>(job.lse.data) + head.row;
  const float* const along = job.along + head.row;
  // Queries that are not there are zeros, and so are their gradients: they add nothing.
  const auto fetch_queries = [&](int tile, int place) {
    const Index first = Index{tile} * kStep;
    fetch<Math, D, kStep, kThreads>(q + first * head.stride, head.stride, tokens - first,
                                    work.width, queries + place * kTileSize);
    fetch<Math, D, kStep, kThreads>(from_dout + first * head.out_stride, head.out_stride,
                                    tokens - first, work.width, douts + place * kTileSize);
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < 2 * kStep) {
      const int query = thread % kStep;
      const bool is_there = first + query < tokens;
      const float* const from = thread < kStep ? lse : along;
      float* const to = thread < kStep ? log_sums : alongs;
      copy_later<4>(to + place * kStep + query, is_there ? from + first + query : from,
                    is_there);
    }
  };
  const Number* const from = q + head.part + work.first * head.stride;
  fetch<Math, D, kRows, kThreads>(from, head.stride, tokens - work.first, work.width, keys);
  fetch<Math, D, kRows, kThreads>(from + head.part, head.stride, tokens - work.first,
                                  work.width, values);
  const Index row = work.first + work.row;
  const bool has_rows = of_warp(row < tokens);
  LeftRows<Math, D> key;
  const float factor = job.scale * kLog2E;
  Sums of_keys[D / 8] = {};
  Sums of_values[D / 8] = {};
  const auto begin = [&] { key.load(keys + work.row * kPitch<Math, D>); };
  in_tiles<kPlaces>((tokens + kStep - 1) / kStep, fetch_queries, begin, [&](int tile, int at) {
    if (has_rows) {
      const int sixteens = sixteens_of<kStep>(tokens - Index{tile} * kStep);
      Sums weights[kStep / 8];
      Sums slopes[kStep / 8];
      scores<Math, D>(key, queries + at * kTileSize, sixteens, weights);
      // Not kept from tile to tile: registers are short.
      LeftRows<Math, D> value;
      value.load(values + work.row * kPitch<Math, D>);
      scores<Math, D>(value, douts + at * kTileSize, sixteens, slopes);
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n) {
        const int column = at * kStep + n * 8 + work.lane % 4 * 2;
        const float2 logs = *reinterpret_cast<const float2*>(log_sums + column);
        const float2 along_both = *reinterpret_cast<const float2*>(alongs + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float shift = shift_of(i % 2 == 0 ? logs.x : logs.y) * kLog2E;
          weights[n][i] = exp2_fast(weights[n][i] * factor - shift);
          slopes[n][i] =
              weights[n][i] * (slopes[n][i] - (i % 2 == 0 ? along_both.x : along_both.y));
        }
      }
      mix<Math, D>(weights, douts + at * kTileSize, sixteens, of_values);
      mix<Math, D>(slopes, queries + at * kTileSize, sixteens, of_keys);
    }
  });
  if (has_rows) {
    Number* const to =
        reinterpret_cast<Number*>(job.dqkv.data) + head.qkv + head.part + row * head.stride;
    store_rows<Math, D>(of_keys, job.scale, job.scale, keys + work.row * kPitch<Math, D>, to,
                        head.stride, tokens - row, work.width);
    store_rows<Math, D>(of_values, 1, 1, values + work.row * kPitch<Math, D>, to + head.part,
                        head.stride, tokens - row, work.width);
  }
}

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
bool takes_many_warps(const AttentionShape& shape) {
  const auto warps_in_all = [&](Index warps) {
    const Index rows = warps * 16;
    return (shape.tokens + rows - 1) / rows * warps;
  };
  return warps_in_all(kManyWarps) <= warps_in_all(kFewWarps);
}

}  // namespace

bool is_for_tensor_cores(const Attention& job) {
  int device = 0;
  int major = 0;
  check(cudaGetDevice(&device), "ask for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "ask for the device's capability");
  const bool is_half = job.qkv.dtype == DType::f16 || job.qkv.dtype == DType::bf16;
  // Rows are copied in pieces of 16 bytes.
  return major >= 8 && job.lse.dtype == DType::f32 &&
         (is_half ? job.shape.width % 8 == 0
                  : job.is_tf32 && job.shape.width % 4 == 0 && job.shape.width <= 64);
}

void attention_on_tensor_cores(Stream stream, const Attention& job) {
  with_math(job, [&](auto math, auto width) {
    using Math = decltype(math);
    constexpr int kD = decltype(width)::value;
    const auto run = [&](auto block) {
      using Block = decltype(block);
      launch<Block>(attention_kernel<Math, kD, Block>, job,
                    shared_bytes<Math, kD>(Block::kRows, kKeys<Math>), stream);
    };
    if constexpr (kD <= 64) {
      takes_many_warps(job.shape) ? run(UsualBlock<kManyWarps>())
                                  : run(UsualBlock<kFewWarps>());
    } else {
      run(UsualBlock<kFewWarps>());
    }
  });
}

void attention_gradient_on_tensor_cores(Stream stream, const AttentionGradient& job) {
  with_math(job, [&](auto math, auto width) {
    using Math = decltype(math);
    constexpr int kD = decltype(width)::value;
    constexpr bool kIsSmall = sizeof(typename Math::Number) == 2 && kD <= 64;
    const auto run_queries = [&](auto block) {
      using Block = decltype(block);
      launch<Block>(query_gradient_kernel<Math, kD, Block>, job,
                    shared_bytes<Math, kD>(2 * Block::kRows, kStep), stream);
    };
    // What is kept in registers is more for keys, f32 and wider heads.
    if constexpr (kIsSmall) {
      takes_many_warps(job.shape) ? run_queries(UsualBlock<kManyWarps>())
                                  : run_queries(UsualBlock<kFewWarps>());
    } else {
      run_queries(Block<kFewWarps, 2>());
    }
    using KeyBlock = Block<kFewWarps, kIsSmall ? 3 : 1>;
    constexpr int kFloats = 2 * kStages<Math, kD> * kStep * static_cast<int>(sizeof(float));
    launch<KeyBlock>(key_gradient_kernel<Math, kD, KeyBlock>, job,
                     shared_bytes<Math, kD>(2 * KeyBlock::kRows, kStep) + kFloats, stream);
  });
}

}  // namespace halfwatt::cuda
