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
namespace {

constexpr int kLeastBlocks = 2;  // on a multiprocessor
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

/// A row's log of sums, measured from what its scores are, and its `along`, of `count` rows;
/// zeros beyond `valid`.
__device__ void fetch_sums(
    const AttentionGradient& job, Index first, int valid, int count, float* lse, float* along) {
  for (int row = static_cast<int>(threadIdx.x); row < count;
       row += static_cast<int>(blockDim.x)) {
    lse[row] = row < valid ? shift_of(load(job.lse, first + row)) : 0.0F;
    along[row] = row < valid ? job.along[first + row] : 0.0F;
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
__device__ float row_sum(float value) {
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, apart);
  }
  return value;
}
__device__ float row_max(float value) {
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

/// Weights of one row of a tile, in the place of its scores, and what they change about its
/// sums.
template <class C>
__device__ void soften(const Thread& me,
                       int valid,
                       float (&scores)[C::kAcross],
                       float (&sums)[2 * C::kPairs],
                       float& most,
                       float& total) {
  float now = kNothing;
#pragma unroll
  for (int j = 0; j < C::kAcross; ++j) {
    scores[j] = me.lane + j * kLanes < valid ? scores[j] : kNothing;
    now = fmaxf(now, scores[j]);
  }
  now = fmaxf(most, row_max(now));
  const float shift = shift_of(now);
  const float before = expf(most - shift);
  float added = 0;
#pragma unroll
  for (int j = 0; j < C::kAcross; ++j) {
    scores[j] = me.lane + j * kLanes < valid ? expf(scores[j] - shift) : 0.0F;
    added += scores[j];
  }
  total = total * before + row_sum(added);
#pragma unroll
  for (float& sum : sums) {
    sum *= before;
  }
  most = now;
}

template <DType E, class C>
__global__ void __launch_bounds__(C::kThreads, kLeastBlocks) attention_kernel(Attention job) {
  extern __shared__ float4 shared[];
  float* const queries = reinterpret_cast<float*>(shared);
  float* const keys = queries + C::kOwn;
  float* const values = keys + C::kOther;
  float* const weights = values + C::kOther;
  const AttentionShape& shape = job.shape;
  const auto width = static_cast<int>(shape.width);
  const auto tokens = static_cast<int>(shape.tokens);
  const auto count = static_cast<int>(job.keys);
  const Thread me;
  const BlockRows rows = BlockRows::of<C>(shape);
  const Head& head = rows.head;
  fetch<E, C, C::kRows>(job.qkv.data, head.qkv + rows.first * head.stride, head.stride,
                        rows.valid, width, job.scale, queries);
  float most[C::kTall];
  float total[C::kTall] = {};
  typename C::Sums sums = {};
#pragma unroll
  for (float& each : most) {
    each = kNothing;
  }
  const bool has_rows = me.warp * 2 * C::kTall < rows.valid;
  for (int key = 0; key < count; key += C::kTile) {
    const int valid = count - key;
    const Index k = head.qkv + head.part + key * head.stride;
    __syncthreads();
    fetch<E, C, C::kTile>(job.qkv.data, k, head.stride, valid, width, 1.0F, keys);
    fetch<E, C, C::kTile>(job.qkv.data, k + head.part, head.stride, valid, width, 1.0F, values);
    __syncthreads();
    if (!has_rows) {
      continue;
    }
    typename C::Scores scores;
    dots<C>(me, queries, keys, valid, scores);
#pragma unroll
    for (int i = 0; i < C::kTall; ++i) {
      soften<C>(me, valid, scores[i], sums[i], most[i], total[i]);
    }
    share<C>(me, scores, weights);
    mix<C>(me, weights, values, valid, sums);
  }
#pragma unroll
  for (int i = 0; i < C::kTall; ++i) {
    const int token = rows.first + me.row<C>(i);
    if (token < tokens) {
      const float part = total[i] == 0 ? 0.0F : 1 / total[i];
      store_row<E, C>(me, sums[i], part, width, job.out.data,
                      head.out + token * head.out_stride);
      if (me.lane == 0) {
        store(job.lse, head.row + token, shift_of(most[i]) + logf(total[i]));
      }
    }
  }
}

template <DType E>
__global__ void along_kernel(AttentionGradient job) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Index rows = job.shape.images * job.shape.heads * job.shape.tokens;
  const Index step = Index{gridDim.x} * (blockDim.x / kWarp);
  for (Index row = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < rows;
       row += step) {
    const Head head = head_of(job.shape, row / job.shape.tokens);
    const Index at = head.out + row % job.shape.tokens * head.out_stride;
    float sum = 0;
    for (Index j = lane; j < job.shape.width; j += kWarp) {
      sum += load<E>(job.out.data, at + j) * load<E>(job.dout.data, at + j);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      job.along[row] = sum;
    }
  }
}

// Rows of a rectangle are queries in the one kernel, its columns in the other.
template <class C, bool kRowsAreQueries>
__device__ int query_of(const Thread& me, int i, int j) {
  return kRowsAreQueries ? me.row<C>(i) : me.lane + j * kLanes;
}

/// Scores become weights, by their queries' logs of sums; 0 beyond `valid` columns.
template <class C, bool kRowsAreQueries>
__device__ void weigh(const Thread& me,
                      int valid,
                      const float* lse,
                      typename C::Scores& scores) {
#pragma unroll
  for (int i = 0; i < C::kTall; ++i) {
#pragma unroll
    for (int j = 0; j < C::kAcross; ++j) {
      const float shift = lse[query_of<C, kRowsAreQueries>(me, i, j)];
      scores[i][j] = me.lane + j * kLanes < valid ? expf(scores[i][j] - shift) : 0.0F;
    }
  }
}

/// Weights become gradients of their scores; 0 beyond `valid` columns.
template <class C, bool kRowsAreQueries>
__device__ void derive(const Thread& me,
                       int valid,
                       const float* along,
                       const typename C::Scores& slopes,
                       typename C::Scores& weights) {
#pragma unroll
  for (int i = 0; i < C::kTall; ++i) {
#pragma unroll
    for (int j = 0; j < C::kAcross; ++j) {
      const float least = along[query_of<C, kRowsAreQueries>(me, i, j)];
      weights[i][j] =
          me.lane + j * kLanes < valid ? weights[i][j] * (slopes[i][j] - least) : 0.0F;
    }
  }
}

template <DType E, class C>
__global__ void __launch_bounds__(C::kThreads, kLeastBlocks)
    query_gradient_kernel(AttentionGradient job) {
  extern __shared__ float4 shared[];
  float* const queries = reinterpret_cast<float*>(shared);
  float* const douts = queries + C::kOwn;
  float* const keys = douts + C::kOwn;
  float* const values = keys + C::kOther;
  float* const weights = values + C::kOther;
  float* const lse = weights + C::kWeights;
  float* const along = lse + C::kRows;
  const AttentionShape& shape = job.shape;
  const auto width = static_cast<int>(shape.width);
  const auto tokens = static_cast<int>(shape.tokens);
  const Thread me;
  const BlockRows rows = BlockRows::of<C>(shape);
  const Head& head = rows.head;
  fetch<E, C, C::kRows>(job.qkv.data, head.qkv + rows.first * head.stride, head.stride,
                        rows.valid, width, job.scale, queries);
  fetch<E, C, C::kRows>(job.dout.data, head.out + rows.first * head.out_stride, head.out_stride,
                        rows.valid, width, 1.0F, douts);
  fetch_sums(job, head.row + rows.first, rows.valid, C::kRows, lse, along);
  typename C::Sums sums = {};
  const bool has_rows = me.warp * 2 * C::kTall < rows.valid;
  for (int key = 0; key < tokens; key += C::kTile) {
    const int valid = tokens - key;
    const Index k = head.qkv + head.part + key * head.stride;
    __syncthreads();
    fetch<E, C, C::kTile>(job.qkv.data, k, head.stride, valid, width, 1.0F, keys);
    fetch<E, C, C::kTile>(job.qkv.data, k + head.part, head.stride, valid, width, 1.0F, values);
    __syncthreads();
    if (!has_rows) {
      continue;
    }
    typename C::Scores scores;
    dots<C>(me, queries, keys, valid, scores);
    weigh<C, true>(me, valid, lse, scores);
    typename C::Scores slopes;
    dots<C>(me, douts, values, valid, slopes);
    derive<C, true>(me, valid, along, slopes, scores);
    share<C>(me, scores, weights);
    mix<C>(me, weights, keys, valid, sums);
  }
#pragma unroll
  for (int i = 0; i < C::kTall; ++i) {
    const int token = rows.first + me.row<C>(i);
    if (token < tokens) {
      store_row<E, C>(me, sums[i], job.scale, width, job.dqkv.data,
                      head.qkv + token * head.stride);
    }
  }
}

template <DType E, class C>
__global__ void __launch_bounds__(C::kThreads, kLeastBlocks)
    key_gradient_kernel(AttentionGradient job) {
  extern __shared__ float4 shared[];
  float* const keys = reinterpret_cast<float*>(shared);
  float* const values = keys + C::kOwn;
  float* const queries = values + C::kOwn;
  float* const douts = queries + C::kOther;
  float* const weights = douts + C::kOther;
  float* const lse = weights + C::kWeights;
  float* const along = lse + C::kTile;
  const AttentionShape& shape = job.shape;
  const auto width = static_cast<int>(shape.width);
  const auto tokens = static_cast<int>(shape.tokens);
  const Thread me;
  const BlockRows rows = BlockRows::of<C>(shape);
  const Head& head = rows.head;
  const Index k = head.qkv + head.part + rows.first * head.stride;
  fetch<E, C, C::kRows>(job.qkv.data, k, head.stride, rows.valid, width, 1.0F, keys);
  fetch<E, C, C::kRows>(job.qkv.data, k + head.part, head.stride, rows.valid, width, 1.0F,
                        values);
  typename C::Sums of_keys = {};
  typename C::Sums of_values = {};
  const bool has_rows = me.warp * 2 * C::kTall < rows.valid;
  for (int query = 0; query < tokens; query += C::kTile) {
    const int valid = tokens - query;
    __syncthreads();
    fetch<E, C, C::kTile>(job.qkv.data, head.qkv + query * head.stride, head.stride, valid,
                          width, job.scale, queries);
    fetch<E, C, C::kTile>(job.dout.data, head.out + query * head.out_stride, head.out_stride,
                          valid, width, 1.0F, douts);
    fetch_sums(job, head.row + query, valid, C::kTile, lse, along);
    __syncthreads();
    if (!has_rows) {
      continue;
    }
    typename C::Scores scores;
    dots<C>(me, keys, queries, valid, scores);
    weigh<C, false>(me, valid, lse, scores);
    share<C>(me, scores, weights);
    mix<C>(me, weights, douts, valid, of_values);
    typename C::Scores slopes;
    dots<C>(me, values, douts, valid, slopes);
    derive<C, false>(me, valid, along, slopes, scores);
    share<C>(me, scores, weights);
    mix<C>(me, weights, queries, valid, of_keys);  // q is scaled already
  }
#pragma unroll
  for (int i = 0; i < C::kTall; ++i) {
    const int token = rows.first + me.row<C>(i);
    if (token < tokens) {
      const Index at = head.qkv + head.part + token * head.stride;
      store_row<E, C>(me, of_keys[i], 1.0F, width, job.dqkv.data, at);
      store_row<E, C>(me, of_values[i], 1.0F, width, job.dqkv.data, at + head.part);
    }
  }
}

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
int most_shared_bytes() {
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

}  // namespace

void attention(Stream stream, const Attention& job) {
  const AttentionShape& shape = job.shape;
  if (shape.images * shape.tokens == 0) {
    return;
  }
  if (is_for_tensor_cores(job)) {
    attention_on_tensor_cores(stream, job);
  } else {
    with_cut(job, [&](auto tag, auto cut) {
      using C = decltype(cut);
      launch<C>(attention_kernel<decltype(tag)::kDType, C>, job, shared_bytes<C>(), stream);
    });
  }
  check_launch("attention");
}

void attention_gradient(Stream stream, const AttentionGradient& job) {
  const AttentionShape& shape = job.shape;
  if (shape.images * shape.tokens == 0) {
    return;
  }
  if (is_for_tensor_cores(job)) {
    attention_gradient_on_tensor_cores(stream, job);
  } else {
    with_cut(job, [&](auto tag, auto cut) {
      using C = decltype(cut);
      constexpr DType kE = decltype(tag)::kDType;
      const Index rows = shape.images * shape.heads * shape.tokens;
      along_kernel<kE><<<blocks_for(rows * kWarp), kThreads, 0, stream>>>(job);
      launch<C>(query_gradient_kernel<kE, C>, job, gradient_bytes<C>(), stream);
      launch<C>(key_gradient_kernel<kE, C>, job, gradient_bytes<C>(), stream);
    });
  }
  check_launch("attention_gradient");
}

}  // namespace halfwatt::cuda
