#include "engine/backend/cuda/kernels/attention_tiles.cuh"

// Gradients are two kernels, one for queries and one for keys and values: seven products where
// five would do, but no row is added up by two blocks, so the bits are always the same and no
// fp32 copy of the queries' gradient goes through memory.

namespace halfwatt::cuda {
namespace {

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

/// What a lane knows of its two rows of a gradient: out . dout, and the log of the weights' sum
/// for powers of two.
struct RowsOfGradient {
  float along[2] = {};
  float log_sum[2] = {};

  /// From `row` on, whose dout lies in shared memory; also stores out . dout.
  template <class Math, int D>
  __device__ void load(const AttentionGradient& job,
                       const Head& head,
                       Index row,
                       const typename Math::Number* douts) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int own = lane / 2;
    const Index tokens = job.shape.tokens;
    const bool is_there = row + own < tokens;
    const float sum = along_row<Math, D>(
        douts + own * kPitch<Math, D>,
        numbers<Math>(job.out) + head.out + (is_there ? row + own : row) * head.out_stride,
        is_there, static_cast<int>(job.shape.width));
    if (lane % 2 == 0 && is_there) {
      job.along[head.row + row + own] = sum;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      along[half] = __shfl_sync(0xffffffffU, sum, 2 * (lane / 4 + 8 * half));
      const Index token = min(row + lane / 4 + 8 * half, tokens - 1);
      log_sum[half] = shift_of(cuda::load(job.lse, head.row + token)) * kLog2E;
    }
  }
  /// Makes the slopes of scores of what weights' slopes and scores are.
  template <int kCount>
  __device__ void finish(float factor,
                         const Sums (&scores)[kCount],
                         Index valid,
                         Sums (&slopes)[kCount]) const {
    const int first = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool is_there = n * 8 + first + i % 2 < valid;
        const float weight = exp2_fast(scores[n][i] * factor - log_sum[i / 2]);
        slopes[n][i] = is_there ? weight * (slopes[n][i] - along[i / 2]) : 0.0F;
      }
    }
  }
};

// Also stores out . dout, which the gradients of keys read.
template <class Math, int D, class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kAtOnce)
    query_gradient_kernel(AttentionGradient job) {
  using Number = typename Math::Number;
  constexpr int kTileSize = kStep * kPitch<Math, D>;
  constexpr int kPlaces = kStages<Math, D>;
  // Of registers in large blocks: one side's operands are loaded again for every tile.
  constexpr bool kIsShort = Block::kAtOnce * Block::kThreads > 384;
  extern __shared__ uint4 memory[];
  Number* const queries = reinterpret_cast<Number*>(memory);
  Number* const douts = queries + Block::kRows * kPitch<Math, D>;
  Number* const keys = douts + Block::kRows * kPitch<Math, D>;
  Number* const values = keys + kPlaces * kTileSize;
  const Work work(job.shape, Block::kRows);
  const Head& head = work.head;
  const int own = work.row * kPitch<Math, D>;
  const Number* const q = numbers<Math>(job.qkv) + head.qkv;
  const auto fetch_keys = [&](int tile, int place) {
    const int to = place * kTileSize;
    work.fetch_tile<Math, D, Block, kStep>(q + head.part, head.stride, tile, keys + to);
    work.fetch_tile<Math, D, Block, kStep>(q + 2 * head.part, head.stride, tile, values + to);
  };
  work.fetch_own<Math, D, Block>(q, head.stride, queries);
  work.fetch_own<Math, D, Block>(numbers<Math>(job.dout) + head.out, head.out_stride, douts);
  LeftRows<Math, D> query;
  LeftRows<Math, D> dout;
  RowsOfGradient rows;
  const auto begin = [&] {
    query.load(queries + own);
    if (!kIsShort) {
      dout.load(douts + own);
    }
    if (work.has_rows) {
      rows.load<Math, D>(job, head, work.token, douts + own);
    }
  };
  const float factor = job.scale * kLog2E;
  Sums sums[D / 8] = {};
  in_tiles<kPlaces>(work.tiles(kStep), fetch_keys, begin, [&](int tile, int place) {
    if (work.has_rows) {
      const Index valid = work.tokens - Index{tile} * kStep;
      const int sixteens = sixteens_of<kStep>(valid);
      Sums weights[kStep / 8];
      Sums slopes[kStep / 8];
      scores<Math, D>(query, keys + place * kTileSize, sixteens, weights);
      if (kIsShort) {
        dout.load(douts + own);
      }
      scores<Math, D>(dout, values + place * kTileSize, sixteens, slopes);
      rows.finish(factor, weights, valid, slopes);
      mix<Math, D>(slopes, keys + place * kTileSize, sixteens, sums);
    }
  });
  if (work.has_rows) {
    store_rows<Math, D>(
        sums, job.scale, job.scale, queries + own,
        reinterpret_cast<Number*>(job.dqkv.data) + head.qkv + work.token * head.stride,
        head.stride, work.tokens - work.token, work.width);
  }
}

/// Of scores whose columns are queries: their weights, and the slopes of scores of those of
/// weights.
template <int kCount>
__device__ void weigh_columns(float factor,
                              const float* log_sums,
                              const float* alongs,
                              Sums (&scores)[kCount],
                              Sums (&slopes)[kCount]) {
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const int column = n * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
    const float2 logs = *reinterpret_cast<const float2*>(log_sums + column);
    const float2 along = *reinterpret_cast<const float2*>(alongs + column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float shift = shift_of(i % 2 == 0 ? logs.x : logs.y) * kLog2E;
      scores[n][i] = exp2_fast(scores[n][i] * factor - shift);
      slopes[n][i] = scores[n][i] * (slopes[n][i] - (i % 2 == 0 ? along.x : along.y));
    }
  }
}

/// Sends for the logs of sums and out . dout of kStep queries; zeros where there are none.
template <int kThreads>
__device__ void fetch_numbers(const float* log_sums,
                              const float* alongs,
                              Index first,
                              Index tokens,
                              float* to_log_sums,
                              float* to_alongs) {
  static_assert(kThreads >= 2 * kStep);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 2 * kStep) {
    const int query = thread % kStep;
    const bool is_there = first + query < tokens;
    const float* const from = thread < kStep ? log_sums : alongs;
    float* const to = thread < kStep ? to_log_sums : to_alongs;
    copy_later<4>(to + query, is_there ? from + first + query : from, is_there);
  }
}

template <class Math, int D, class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kAtOnce)
    key_gradient_kernel(AttentionGradient job) {
  using Number = typename Math::Number;
  constexpr int kTileSize = kStep * kPitch<Math, D>;
  constexpr int kPlaces = kStages<Math, D>;
  extern __shared__ uint4 memory[];
  Number* const keys = reinterpret_cast<Number*>(memory);
  Number* const values = keys + Block::kRows * kPitch<Math, D>;
  Number* const queries = values + Block::kRows * kPitch<Math, D>;
  Number* const douts = queries + kPlaces * kTileSize;
  auto* const log_sums = reinterpret_cast<float*>(douts + kPlaces * kTileSize);
  float* const alongs = log_sums + kPlaces * kStep;
  const Work work(job.shape, Block::kRows);
  const Head& head = work.head;
  const int own = work.row * kPitch<Math, D>;
  const Number* const q = numbers<Math>(job.qkv) + head.qkv;
  const Number* const dout = numbers<Math>(job.dout) + head.out;
  const auto* const lse = reinterpret_cast<const float*>(job.lse.data) + head.row;
  // Queries that are not there are zeros, and so are their gradients: they add nothing.
  const auto fetch_queries = [&](int tile, int at) {
    const int to = at * kTileSize;
    work.fetch_tile<Math, D, Block, kStep>(q, head.stride, tile, queries + to);
    work.fetch_tile<Math, D, Block, kStep>(dout, head.out_stride, tile, douts + to);
    fetch_numbers<Block::kThreads>(lse, job.along + head.row, Index{tile} * kStep, work.tokens,
                                   log_sums + at * kStep, alongs + at * kStep);
  };
  work.fetch_own<Math, D, Block>(q + head.part, head.stride, keys);
  work.fetch_own<Math, D, Block>(q + 2 * head.part, head.stride, values);
  LeftRows<Math, D> operand;  // registers are short: of keys and values in turns
  const float factor = job.scale * kLog2E;
  Sums of_keys[D / 8] = {};
  Sums of_values[D / 8] = {};
  const Index tiles = (work.tokens + kStep - 1) / kStep;
  in_tiles<kPlaces>(
      tiles, fetch_queries, [] {},
      [&](int tile, int at) {
        if (work.has_rows) {
          const int sixteens = sixteens_of<kStep>(work.tokens - Index{tile} * kStep);
          Sums weights[kStep / 8];
          Sums slopes[kStep / 8];
          operand.load(keys + own);
          scores<Math, D>(operand, queries + at * kTileSize, sixteens, weights);
          operand.load(values + own);
          scores<Math, D>(operand, douts + at * kTileSize, sixteens, slopes);
          weigh_columns(factor, log_sums + at * kStep, alongs + at * kStep, weights, slopes);
          mix<Math, D>(weights, douts + at * kTileSize, sixteens, of_values);
          mix<Math, D>(slopes, queries + at * kTileSize, sixteens, of_keys);
        }
      });
  if (work.has_rows) {
    Number* const to = reinterpret_cast<Number*>(job.dqkv.data) + head.qkv + head.part +
                       work.token * head.stride;
    const Index left = work.tokens - work.token;
    store_rows<Math, D>(of_keys, job.scale, job.scale, keys + own, to, head.stride, left,
                        work.width);
    store_rows<Math, D>(of_values, 1, 1, values + own, to + head.part, head.stride, left,
                        work.width);
  }
}

}  // namespace

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
