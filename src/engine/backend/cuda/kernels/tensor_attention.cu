#include "engine/backend/cuda/kernels/attention_tiles.cuh"

namespace halfwatt::cuda {
namespace {

/// Columns of a lane's scores from `valid` on are none.
template <int kCount>
__device__ void mask(Sums (&scores)[kCount], Index valid) {
  const int first = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n * 8 + first + i % 2 >= valid) {
        scores[n][i] = kNothing;
      }
    }
  }
}

/// What a lane knows of its two rows of scores: the largest, and its share of the weights' sum.
struct RowsSoFar {
  float most[2] = {kNothing, kNothing};
  float total[2] = {0, 0};

  /// Makes weights of scores, measured from the largest so far; what was summed up before is
  /// measured from it too. `factor`: of scores, for powers of two.
  template <int kCount, int kColumns>
  __device__ void add(float factor, Sums (&scores)[kCount], Sums (&sums)[kColumns]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = most[half];
#pragma unroll
      for (int n = 0; n < kCount; ++n) {
        now = fmaxf(now, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      }
      now = row_max(now);
      const float shift = shift_of(now) * factor;
      const float before = exp2_fast(most[half] * factor - shift);
      most[half] = now;
      float added = 0;
#pragma unroll
      for (int n = 0; n < kCount; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = exp2_fast(scores[n][i] * factor - shift);
          added += scores[n][i];
        }
      }
      total[half] = total[half] * before + added;
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        sums[n][2 * half] *= before;
        sums[n][2 * half + 1] *= before;
      }
    }
  }
  /// The sums over all lanes of a row, and the log of them to `to`; of rows from `first` on.
  __device__ void finish(
      float scale, const Elements& to, Index first_of_head, Index first, Index tokens) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] = row_sum(total[half]);
      const Index token = first + half * 8 + lane / 4;
      if (lane % 4 == 0 && token < tokens) {
        store(to, first_of_head + token, shift_of(most[half]) * scale + logf(total[half]));
      }
    }
  }
  __device__ float share(int half) const { return total[half] == 0 ? 0.0F : 1 / total[half]; }
};

template <class Math, int D, class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kAtOnce)
    attention_kernel(Attention job) {
  using Number = typename Math::Number;
  constexpr int kTile = kKeys<Math>;
  constexpr int kTileSize = kTile * kPitch<Math, D>;
  constexpr int kPlaces = kStages<Math, D>;
  extern __shared__ uint4 memory[];
  Number* const queries = reinterpret_cast<Number*>(memory);
  Number* const keys = queries + Block::kRows * kPitch<Math, D>;
  Number* const values = keys + kPlaces * kTileSize;
  const Work work(job.shape, Block::kRows);
  const Head& head = work.head;
  Number* const own = queries + work.row * kPitch<Math, D>;
  const Number* const q = numbers<Math>(job.qkv) + head.qkv;
  const auto fetch_keys = [&](int tile, int place) {
    const int to = place * kTileSize;
    work.fetch_tile<Math, D, Block, kTile>(q + head.part, head.stride, tile, keys + to);
    work.fetch_tile<Math, D, Block, kTile>(q + 2 * head.part, head.stride, tile, values + to);
  };
  work.fetch_own<Math, D, Block>(q, head.stride, queries);
  LeftRows<Math, D> query;
  const float factor = job.scale * kLog2E;
  RowsSoFar rows;
  Sums sums[D / 8] = {};
  const auto begin = [&] { query.load(own); };
  in_tiles<kPlaces>(work.tiles(kTile), fetch_keys, begin, [&](int tile, int place) {
    if (work.has_rows) {
      const Index valid = job.keys - Index{tile} * kTile;
      const int sixteens = sixteens_of<kTile>(valid);
      Sums weights[kTile / 8];
      scores<Math, D>(query, keys + place * kTileSize, sixteens, weights);
      if (valid < kTile) {
        mask(weights, valid);
      }
      rows.add(factor, weights, sums);
      mix<Math, D>(weights, values + place * kTileSize, sixteens, sums);
    }
  });
  if (work.has_rows) {
    rows.finish(job.scale, job.lse, head.row, work.token, work.tokens);
    store_rows<Math, D>(
        sums, rows.share(0), rows.share(1), own,
        reinterpret_cast<Number*>(job.out.data) + head.out + work.token * head.out_stride,
        head.out_stride, work.tokens - work.token, work.width);
  }
}

}  // namespace

bool is_for_tensor_cores(const Attention& job) {
  // What is translated from code for older cards has no such products, whatever the card has.
  cudaFuncAttributes code{};
  check(cudaFuncGetAttributes(
            &code, attention_kernel<HalfMath<DType::f16>, 64, UsualBlock<kFewWarps>>),
        "ask what code there is");
  constexpr int kAmpere = 80;
  const bool is_half = job.qkv.dtype == DType::f16 || job.qkv.dtype == DType::bf16;
  // Rows are copied in pieces of 16 bytes.
  return code.ptxVersion >= kAmpere && job.lse.dtype == DType::f32 &&
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

}  // namespace halfwatt::cuda
