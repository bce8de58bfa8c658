#include "engine/backend/cuda/kernels/attention_rectangles.cuh"

namespace halfwatt::cuda {
namespace {

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

}  // namespace

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
